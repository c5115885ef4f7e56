"""What a script has left in open files, where its process ends without winding down."""
from __future__ import annotations

import contextlib
import gc
import io
import os
import stat
import sys
from typing import BinaryIO, cast


class PartialFile(io.BufferedWriter):
    """A file of our own that a thread writes: who ends the process leaves it alone, as that may
    wait for a disk."""


def write_out() -> None:
    """Brings to its file what the script has left in files that are open, as winding down does.

    Of those that are no text only what goes to a disk: another process may read a pipe no more.
    """
    left = [each for each in gc.get_objects() if _is_scripts(each)]
    for each in (sys.stdout, sys.stderr, *left):
        with contextlib.suppress(Exception):  # a reader is gone, say; the process ends all the same
            each.flush()


def _is_scripts(found: object) -> bool:
    # Not isinstance, which asks objects that stand for others, and may be gone.
    kind = type(found)
    if issubclass(kind, io.TextIOWrapper):
        return True
    if kind not in (io.BufferedWriter, io.BufferedRandom):
        return False
    with contextlib.suppress(Exception):  # it is closed, or something of the script's own
        return stat.S_ISREG(os.fstat(cast(BinaryIO, found).fileno()).st_mode)
    return False
