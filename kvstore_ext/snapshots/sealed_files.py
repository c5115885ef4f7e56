"""Files that are there whole or not at all, each with a seal: its SHA-256, in a file beside it.

A seal is a line as sha256sum writes it, so that `sha256sum -c *.sha256` checks a snapshot.
"""
from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pickle
from pathlib import Path
from typing import Any, BinaryIO, Callable, NamedTuple, Optional

from ..unwritten import PartialFile
from .part import SnapshotError

_SUFFIX = ".sha256"
_PARTIAL = ".part"  # of a file that is not whole yet
_CHUNK = 1 << 20  # bytes


class Seal(NamedTuple):
    """What is known of a file: bytes, and the hexadecimal SHA-256 of its content."""

    size: int
    digest: str


class _Sealing:
    """A file that is written, and its checksum meanwhile."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._size = 0

    def write(self, data: Any) -> int:
        self._digest.update(data)
        self._size += memoryview(data).nbytes
        return self._file.write(data)

    @property
    def seal(self) -> Seal:
        return Seal(self._size, self._digest.hexdigest())


def write_sealed(path: Path, content: Any) -> Seal:
    """Pickles the content into a file, then seals it."""
    sealed: Optional[Seal] = None

    def fill(file: BinaryIO) -> None:
        nonlocal sealed
        sealing = _Sealing(file)
        pickle.Pickler(sealing, protocol=5).dump(content)
        sealed = sealing.seal

    write_whole(path, fill)
    assert sealed is not None
    line = f"{sealed.digest}  {path.name}\n".encode()
    write_whole(path.with_name(path.name + _SUFFIX), lambda file: file.write(line))
    return sealed


def seal_of(path: Path) -> Optional[Seal]:
    """What is known of a file, as its worker has sealed it; None until it has."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        digest, _, name = path.with_name(path.name + _SUFFIX).read_text().partition("  ")
        if name == f"{path.name}\n":
            return Seal(path.stat().st_size, digest)
    return None


def check_sealed(path: Path, seal: Seal) -> None:
    """Raises SnapshotError, with both values, for a file of another content than this seal's."""
    try:
        size = path.stat().st_size
        if size != seal.size:
            raise SnapshotError(f"{path.name} has {size} bytes; the manifest says {seal.size}")
        digest = hashlib.sha256()
        with path.open("rb") as file:
            for chunk in iter(lambda: file.read(_CHUNK), b""):
                digest.update(chunk)
    except OSError as error:
        raise SnapshotError(f"{path.name} cannot be read: {error.strerror}") from None
    if digest.hexdigest() != seal.digest:
        raise SnapshotError(
            f"{path.name} has SHA-256 {digest.hexdigest()}; the manifest says {seal.digest}"
        )


def remove_sealed(path: Path) -> None:
    """Removes such a file, or what there is of it."""
    for each in (path, path.with_name(path.name + _SUFFIX)):
        for name in (each.name, each.name + _PARTIAL):
            path.with_name(name).unlink(missing_ok=True)


def read_sealed(path: Path, seal: Seal) -> Any:
    """What was written into a file. It is unpickled, which executes what a stranger may have
    written: only a file that was checked against its manifest, in a directory of one's own."""
    check_sealed(path, seal)
    with path.open("rb") as file:
        return pickle.load(file)


def write_whole(path: Path, fill: Callable[[BinaryIO], Any]) -> None:
    """Has fill(file) write a file of another name, which gets its own once it is on the disk."""
    partial = path.with_name(path.name + _PARTIAL)
    with new_file(partial) as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    flush_directory(path.parent)


def new_file(path: Path) -> BinaryIO:
    """Opens a file in place of what is there, and follows no link that somebody has put there."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return PartialFile(path.open("xb", buffering=0))


def flush_directory(path: Path) -> None:
    """Has the names in a directory reach the disk, where the file system can do so: some that hosts
    share cannot, and those of Windows."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
