#!/bin/sh
# Builds a wheel for the Python of an environment and for all hosts whose glibc is new enough:
#
#     tools/make_wheel.sh .venv/bin dist
#
# The environment has requirements/build.txt and requirements/wheel.txt. auditwheel finds the oldest
# glibc that has all that the core uses, and refuses a core that needs what no host has.
set -eu

[ $# -eq 2 ] || { echo "usage: tools/make_wheel.sh PROGRAMS DIRECTORY" >&2; exit 2; }
PATH=$1:$PATH
rm -rf build/wheel
"$1/python" -m pip wheel -qq --no-deps --no-build-isolation -w build/wheel .
platform=$(auditwheel show build/wheel/*.whl | grep -om 1 'manylinux_[0-9]*_[0-9]*_[a-z0-9_]*')
auditwheel repair --plat "$platform" --only-plat -w "$2" build/wheel/*.whl
