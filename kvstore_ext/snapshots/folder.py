"""The snapshots of a directory: a directory each, named by its number there and its step."""
from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import AbstractSet, List, NamedTuple

from . import manifest

_NAME = re.compile(r"snapshot-(\d{6,})-step-(\d+)")


class Entry(NamedTuple):
    """A snapshot, or what an end in the midst of writing has left of one."""

    number: int
    step: int
    path: Path


def entry(directory: Path, number: int, step: int) -> Entry:
    """One of this number, in the order in which they are taken, and of this step."""
    return Entry(number, step, directory / f"snapshot-{number:06d}-step-{step}")


def entries(directory: Path) -> List[Entry]:
    """All, by number; nothing where there is no such directory."""
    if not directory.is_dir():
        return []
    found = [(_NAME.fullmatch(path.name), path) for path in directory.iterdir()]
    return sorted(Entry(int(name[1]), int(name[2]), path) for name, path in found if name)


def complete(directory: Path) -> List[Entry]:
    """Those that were completed, the newest first."""
    return [one for one in reversed(entries(directory)) if manifest.is_there(one.path)]


def next_number(directory: Path) -> int:
    """One that no other has had, whatever came of it."""
    return max((one.number for one in entries(directory)), default=-1) + 1


def remove_unfinished(directory: Path) -> None:
    """Removes what ends in the midst of writing have left, while nobody writes there."""
    for one in entries(directory):
        if not manifest.is_there(one.path):
            shutil.rmtree(one.path, ignore_errors=True)


def remove_others(directory: Path, keep: int, refused: AbstractSet[int]) -> None:
    """Removes all but the newest that were completed, and those that may still be written. Those of
    these numbers do not count, and stay: the run could not go on from them."""
    kept = [one for one in complete(directory) if one.number not in refused][:keep]
    newest = kept[0].number if kept else -1
    for one in entries(directory):
        if one not in kept and one.number < newest and one.number not in refused:
            manifest.remove_manifest(one.path)
            shutil.rmtree(one.path, ignore_errors=True)
