#!/bin/sh
# Makes a virtual environment with an interpreter that MXNet 1.9.1 runs on, and sees first that
# everything is there to build the extension with it; root gets what is missing by apt-get:
#
#     [PYTHON=python3.10] tools/make_environment.sh .venv
#
# Without PYTHON it takes the first that runs of python3.11, 3.10, 3.9, 3.12, 3.8 and python3.
set -eu

allowed="3.8, 3.9, 3.10, 3.11 and 3.12"

fail() {
    echo "error: $1" >&2
    exit 1
}

# Prints 3.11 or the like; fails where the command does not run, as pyenv's placeholders do not.
version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

is_allowed() {
    case $1 in
        3.8 | 3.9 | 3.10 | 3.11 | 3.12) return 0 ;;
        *) return 1 ;;
    esac
}

# Names the interpreter, or nothing where none fits.
choose_interpreter() {
    if [ -n "${PYTHON:-}" ]; then
        version=$(version_of "$PYTHON") || fail "PYTHON=$PYTHON does not run"
        is_allowed "$version" ||
            fail "PYTHON=$PYTHON is Python $version; MXNet 1.9.1 runs on $allowed"
        echo "$PYTHON"
        return
    fi
    for candidate in python3.11 python3.10 python3.9 python3.12 python3.8 python3; do
        version=$(version_of "$candidate") || continue
        if is_allowed "$version"; then
            echo "$candidate"
            return
        fi
    done
}

has_venv() {
    # Debian leaves ensurepip, without which venv makes no pip, to another package.
    "$python" -c 'import venv, ensurepip' 2>/dev/null
}

has_headers() {
    include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    [ -f "$include/Python.h" ]
}

has_compiler() {
    # Extensions are built with the compiler that Python was built with, unless CXX names another.
    compiler=${CXX:-$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("CXX"))')}
    # Unquoted: the value may hold options.
    echo '#include <string_view>' | $compiler -std=c++17 -fno-gnu-unique -fsyntax-only -x c++ - 2>/dev/null
}

miss() {
    missing="$missing
  $1"
    packages="$packages $2"
}

# Whether everything is there; sets `python`, and what is missing.
look() {
    missing=""
    packages=""
    python=$(choose_interpreter) || exit 1
    if [ -z "$python" ]; then
        miss "Python; MXNet 1.9.1 runs on $allowed, and PYTHON=... names one" \
            "python3 python3-venv python3-dev g++"
        return 1
    fi
    version=$(version_of "$python")
    has_venv || miss "the venv module of Python $version" "python$version-venv"
    has_headers || miss "the headers of Python $version ($include/Python.h)" "python$version-dev"
    has_compiler || miss "GCC, for C++17 ($compiler is none, or too old; CXX may name another)" "g++"
    [ -z "$missing" ]
}

[ $# -eq 1 ] || fail "usage: tools/make_environment.sh DIRECTORY"
directory=$1
if [ -e "$directory" ] && [ ! -f "$directory/pyvenv.cfg" ]; then
    fail "$directory exists and is no virtual environment; it would be emptied"
fi

if ! look; then
    # Unquoted: a word for each package.
    # shellcheck disable=SC2086
    "$(dirname "$0")/system_packages.sh" install $packages && look || fail "missing are$missing
Debian and Ubuntu have them: apt-get install$packages"
fi

echo "Making $directory with $("$python" --version) ($(command -v "$python"))"
"$python" -m venv --clear "$directory"
