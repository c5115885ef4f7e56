#!/bin/sh
# Sees to it that packages of Debian or Ubuntu are there:
#
#     tools/system_packages.sh for test             those that requirements/debian.txt has for it
#     tools/system_packages.sh install PACKAGE...   these
#
# Root gets them by apt-get. The status is 1 where they are not there in the end; `for` names them.
set -eu

list=$(dirname "$0")/../requirements/debian.txt
# Debian keeps some programs where only root's PATH looks.
PATH=$PATH:/usr/sbin:/sbin

is_there() {
    case $1 in
        /*) [ -e "$1" ] ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

missing_for() {
    while read -r sign package purpose; do
        if [ "$purpose" = "$1" ] && ! is_there "$sign"; then
            echo "$package"
        fi
    done <"$list"
}

install() {
    [ "$(id -u)" -eq 0 ] && is_there apt-get || return 1
    echo "Installing $*"
    export DEBIAN_FRONTEND=noninteractive
    output=$(
        exec 2>&1 </dev/null
        apt-get update -qq && apt-get install -qq --no-install-recommends "$@"
    ) || {
        echo "$output" >&2
        return 1
    }
}

case "${1:-} $#" in
    "for 2")
        packages=$(missing_for "$2" | xargs)
        # Unquoted: a word for each package.
        # shellcheck disable=SC2086
        [ -z "$packages" ] || install $packages || {
            echo "make $2 skips what needs packages; as root: apt-get install $packages" >&2
            exit 1
        }
        ;;
    "install "*)
        shift
        install "$@"
        ;;
    *)
        echo "usage: tools/system_packages.sh for PURPOSE | install PACKAGE..." >&2
        exit 2
        ;;
esac
