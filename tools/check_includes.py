#!/usr/bin/env python3
"""Checks that the rooms of the core include each other in one direction: make lint.

A room is a directory of kvstore_ext/csrc. Each may include those that stand to the right of it
here, and what these may include.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Iterator, List, Set

CORE = Path(__file__).resolve().parent.parent / "kvstore_ext" / "csrc"

MAY_INCLUDE = {
    "support": [],
    "trace": ["support"],
    "transport": ["support", "trace"],
    "security": ["support"],
    "codecs": ["support"],
    "keys": ["transport", "codecs"],
    "worker": ["keys"],
    "server": ["keys"],
    "slim_dp": ["worker", "server"],
    "engine": ["worker"],
    "bindings": ["server", "slim_dp", "engine", "security"],
}


def reach(room: str) -> Set[str]:
    """A room, and all that it may include."""
    return {room}.union(*(reach(below) for below in MAY_INCLUDE[room]))


def violations() -> Iterator[str]:
    """What is wrong, in words, a line each."""
    for file in sorted(CORE.rglob("*.*")):
        room = file.relative_to(CORE).parts[0]
        if room not in MAY_INCLUDE:
            yield f"{file}: {room} is no room; the rooms are {', '.join(MAY_INCLUDE)}"
            continue
        for included in re.findall(r'^#include "(.*)"', file.read_text(), flags=re.MULTILINE):
            other = included.split("/")[0]
            if not (CORE / included).is_file():
                yield f"{file}: there is no {included}"
            elif other not in reach(room):
                allowed = ", ".join(sorted(reach(room)))
                yield f"{file}: {room} includes {included}; it may include {allowed}"


def main() -> int:
    """Prints what is wrong; the status is 1 where anything is."""
    found: List[str] = list(violations())
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
