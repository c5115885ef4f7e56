"""Snapshots: what a run needs to go on with the same bits, written beside training, whole or not.

What this room promises: a snapshot is of one step on all workers; it counts only once the last file
of it has reached the disk; what is damaged, or another run's, is told with both values and never
taken. It knows files, steps and parts, and nothing of keys or optimizers. In reading order:

    part.py           what a part of a run hands over and takes back
    random_states.py  a part: the process's random generators
    sealed_files.py   files with checksums, which are there whole or not
    manifest.py       what a snapshot says of itself, written last
    folder.py         the snapshots of a directory, and which of them are kept
    writing.py        a thread that writes beside training
    choice.py         the newest snapshot that fits, with what is wrong with the others
    snapshots.py      takes snapshots at common steps, and goes on from one

It imports errors, notes, unwritten, version and whole_numbers, and nothing else of kvstore_ext.
"""
from __future__ import annotations

from .part import Part
from .snapshots import Snapshots

__all__ = ["Part", "Snapshots"]
