"""Files that are there whole, or as they were before."""
from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any, Iterator

from ..snapshots.sealed_files import flush_directory, new_file


@contextlib.contextmanager
def whole_file(name: Any, rank: int) -> Iterator[Any]:
    """Gives the name of another file, which takes this one's place once the block has written it;
    where the block raises it is removed.

    Parameters
    ----------
    name
        As `open` takes it. It is given as it is where nothing can take its place: of a device or a
        pipe, of a file that must not be written, and in a directory where none can be made.
    rank
        The worker's: several may write files of one name at once.
    """
    there = os.path.exists(name)
    may_be_written = not there or (os.path.isfile(name) and os.access(name, os.W_OK))
    path = os.fsdecode(os.path.realpath(name))  # so that a link stays one
    if not may_be_written or not os.access(os.path.dirname(path), os.W_OK):
        yield name
        return
    partial = f"{path}.worker-{rank}.part"
    new_file(Path(partial)).close()
    try:
        yield partial
        with open(partial, "rb") as written:
            os.fsync(written.fileno())
        if there:
            shutil.copymode(path, partial)
        os.replace(partial, path)
        # Of a directory that nobody may list.
        with contextlib.suppress(OSError):
            flush_directory(Path(path).parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
