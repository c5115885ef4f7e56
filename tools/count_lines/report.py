#!/usr/bin/env python3
"""Prints the page that says which share of the lines has run, room by room: make coverage.

Its arguments are what coverage.py and gcovr have written as JSON.
"""
from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import date
from pathlib import Path, PurePath
from typing import Iterable, Tuple

File = Tuple[str, int, int]  # its path, its lines, and how many of these have run

ALL = "all"

HEAD = """\
# What the tests run

```sh
make coverage
```

has written this page: the lines that `make test` and the core's own tests run, counted by
coverage.py and gcov in all processes that they start. Not counted is what a process has run that
was killed, and what only `make test-all` runs, above all longer measurements of `benchmarks/`. The
lines that nothing has run stand in `build/coverage/missed-python.txt` and `missed-core.txt`.

`make coverage PYTEST_FLAGS=tests/launch` runs some tests and prints the page without writing it.
After a run in which tests have failed, `make coverage COUNTS=kept PYTEST_FLAGS=--lf` adds what they
run, and writes the page when they pass.
"""

TABLE = ["| directory | lines | not run | run |", "| --- | ---: | ---: | ---: |"]


def python_files(report: dict) -> Iterable[File]:
    for path, found in report["files"].items():
        yield path, found["summary"]["num_statements"], found["summary"]["covered_lines"]


def core_files(report: dict) -> Iterable[File]:
    for found in report["files"]:
        yield found["filename"], found["line_total"], found["line_covered"]


def table(files: Iterable[File]) -> str:
    """A row a directory, and one for all of them."""
    lines: Counter[str] = Counter()
    run: Counter[str] = Counter()
    for path, total, covered in files:
        for room in (f"`{PurePath(path).parent}/`".replace("`./`", "`./*.py`"), ALL):
            lines[room] += total
            run[room] += covered
    rooms = [*sorted(room for room in lines if room != ALL), ALL]
    rows = [
        f"| {room} | {lines[room]} | {lines[room] - run[room]} | "
        f"{100 * run[room] / lines[room]:.1f} % |"
        for room in rooms
        if lines[room]
    ]
    return "\n".join([*TABLE, *rows])


def main() -> None:
    python, core = (json.loads(Path(path).read_text()) for path in sys.argv[1:])
    print(HEAD)
    print(f"Counted on {date.today().isoformat()}. Python:\n")
    print(table(python_files(python)))
    print("\nC++:\n")
    print(table(core_files(core)))


if __name__ == "__main__":
    main()
