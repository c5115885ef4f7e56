#!/bin/sh
# Counts which lines tests run: `make test`, or some of it, and the core's own tests.
#
#     [COUNTS=kept] tools/count_lines/measure.sh DIRECTORY [PYTEST_FLAG...]
#
# With COUNTS=kept to those of the last run, of the same sources, some more are added.
#
# They run in a copy of the project below DIRECTORY, which keeps its own environment and its own
# compiled core. What is found goes to DIRECTORY: the page coverage.md and, file by file, the lines
# that no test has run, missed-python.txt and missed-core.txt.
# The status is 0 only where all tests have passed.
set -eu
cd "$(dirname "$0")/../.."

mkdir -p "$1/checkout"
found=$(cd "$1" && pwd)
copy=$found/checkout
shift

find "$copy" -mindepth 1 -maxdepth 1 ! -name .venv ! -name build ! -name .pytest_cache \
    -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c '
    for name; do test ! -e "$name" || cp -p --parents "$name" "$0"; done' "$copy"
cd "$copy"
counting=kvstore_ext_counting.pth  # has interpreters of the copy's environment count
stop_counting() { find .venv -name "$counting" -delete 2>/dev/null || true; }
trap stop_counting EXIT
trap 'exit 1' INT TERM
stop_counting  # where an earlier run was killed
git init -q . && git add -A  # tests ask which files there are

# The object has what the core lacks: a function that writes the counts before the process ends.
mkdir -p build
${CC:-gcc} -c -fPIC tools/count_lines/write_counts.c -o build/write_counts.o
flags="--coverage -fprofile-update=atomic"
export CFLAGS="$flags" CXXFLAGS="$flags" LDFLAGS="--coverage $copy/build/write_counts.o"
rm -f .venv/stamps/package  # the core lay beside its sources, which are new copies
make -s ENVIRONMENT=.venv .venv/stamps/coverage .venv/stamps/package
unset CFLAGS CXXFLAGS LDFLAGS

# From here on every interpreter of this environment counts, whoever starts it, wherever it runs.
if [ "${COUNTS:-}" != kept ]; then
    rm -rf build/counts
    find build -name '*.gcda' -delete
fi
mkdir -p build/counts
site=$(.venv/bin/python -c 'import site; print(site.getsitepackages()[0])')
cp tools/count_lines/counting.py "$site/kvstore_ext_counting.py"
echo "import kvstore_ext_counting; kvstore_ext_counting.begin('$copy')" >"$site/$counting"

status=0
make -s ENVIRONMENT=.venv test PYTEST_FLAGS="$*" || status=$?
make -s -f tests/core/sanitize.mk -j "$(nproc)" run-coverage || status=$?
stop_counting

settings="--rcfile=tools/count_lines/counting.ini"
export CHECKOUT="$copy"
.venv/bin/coverage combine -q --append $settings
.venv/bin/coverage json -q $settings -o build/python.json
.venv/bin/coverage report $settings -m --skip-covered >"$found/missed-python.txt"
.venv/bin/gcovr -r . --filter kvstore_ext/csrc/ --json-summary build/core.json \
    --merge-lines --txt "$found/missed-core.txt" --gcov-ignore-parse-errors=negative_hits.warn build
.venv/bin/python tools/count_lines/report.py build/python.json build/core.json >"$found/coverage.md"
cat "$found/coverage.md"
exit $status
