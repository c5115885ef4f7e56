"""Writes snapshots beside training: each worker its own files, rank 0 the manifest at last."""
from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, List, Optional

import mxnet as mx

from ..errors import KVStoreError
from ..notes import say
from .folder import Entry, remove_others
from .manifest import Manifest, is_there
from .sealed_files import flush_directory, remove_sealed, seal_of, write_sealed

SHARED = "shared.states"

_BETWEEN_LOOKS = 0.2  # seconds, at whether the job has failed


def file_of(rank: int) -> str:
    """The file of what a worker has by itself."""
    return f"worker-{rank}.states"


def files_of(workers: int) -> List[str]:
    """All files of a snapshot but the manifest and the seals."""
    return [SHARED, *map(file_of, range(workers))]


@dataclass(frozen=True)
class Contents:
    """What a worker writes: files with their contents, and on rank 0 the manifest of all.

    Attributes
    ----------
    keep
        How many whole snapshots stay, beside those of the `refused` numbers.
    numpy_shapes
        Whether arrays are read with NumPy's shapes (npx.set_np), as this run has them.
    """

    entry: Entry
    files: Dict[str, Any]
    manifest: Optional[Manifest]
    keep: int
    refused: FrozenSet[int] = frozenset()
    numpy_shapes: bool = False


class Writing:
    """Writes one snapshot at a time on a thread of its own. The script's thread calls it.

    Parameters
    ----------
    timeout
        Seconds that rank 0 waits for the files of the others, and that each waits for its own once
        the job has failed.
    failure
        Why the job has failed, if it has, so that nobody is waited for.
    """

    def __init__(self, timeout: float, failure: Callable[[], str]) -> None:
        self._timeout = timeout
        self._job_failure = failure
        self._thread = threading.Thread()
        self._failure = ""  # the thread's, until it has ended
        self._latest = math.inf  # when nobody waits for it any more

    def wait(self) -> None:
        """Waits until all is written, or could not be. Once the job has failed, `timeout` at most,
        as a disk may hang."""
        while self._thread.is_alive() and time.monotonic() < self._latest:
            self._thread.join(_BETWEEN_LOOKS)
            if self._job_failure():
                self._latest = min(self._latest, time.monotonic() + self._timeout)

    def begin(self, contents: Contents) -> None:
        """Begins to write, once the one before is written; returns at once after that. Raises
        KVStoreError where that one could not be, when this one has begun: others write it too."""
        try:
            self.join()
        finally:
            if not self._thread.is_alive():  # as of a disk that hangs
                self._thread = threading.Thread(
                    target=self._run, args=(contents,), daemon=True, name="write snapshot"
                )
                self._thread.start()

    def join(self) -> None:
        """Waits until all is written; raises KVStoreError where the last one could not be."""
        self.wait()
        failure, self._failure = self._failure, ""
        if self._thread.is_alive():
            failure = f"a snapshot is not written {self._timeout:g} s after the job has failed"
        if failure:
            raise KVStoreError(failure)

    def _run(self, contents: Contents) -> None:
        # Of this thread: by it MXNet chooses the format of an array, and whether it reads one.
        mx.util.set_np_shape(contents.numpy_shapes)
        try:
            self._write(contents)
        except Exception as error:
            what = error if isinstance(error, KVStoreError) else f"{type(error).__name__}: {error}"
            self._failure = (
                f"the snapshot of step {contents.entry.step} could not be written to "
                f"{contents.entry.path}: {what}"
            )
            with contextlib.suppress(OSError):
                _remove_own(contents)

    def _write(self, contents: Contents) -> None:
        directory = contents.entry.path
        directory.mkdir(parents=True, exist_ok=True)
        flush_directory(directory.parent)
        for name, content in contents.files.items():
            write_sealed(directory / name, content)
        if contents.manifest is None:
            return
        manifest = self._completed(directory, contents.manifest)
        manifest.write(directory)
        try:
            remove_others(directory.parent, contents.keep, contents.refused)
        except OSError as error:  # this one is whole all the same
            say(f"older snapshots stay in {directory.parent}: {error}")

    def _completed(self, directory: Path, manifest: Manifest) -> Manifest:
        """With the files of all workers, once they are there."""
        names = files_of(manifest.workers)
        latest = time.monotonic() + self._timeout
        while True:
            found = {name: seal_of(directory / name) for name in names}
            seals = {name: seal for name, seal in found.items() if seal is not None}
            missing = [name for name in names if name not in seals]
            if not missing:
                return dataclasses.replace(manifest, files=seals)
            if self._job_failure():
                raise KVStoreError(f"{', '.join(missing)} did not come: {self._job_failure()}")
            if time.monotonic() > latest:
                raise KVStoreError(
                    f"{', '.join(missing)} did not come within {self._timeout:g} s; all workers "
                    "must call snapshot after the same steps, with a directory that all hosts share"
                )
            time.sleep(0.05)


def _remove_own(contents: Contents) -> None:
    """Gives back the room on a disk that was full, perhaps."""
    directory = contents.entry.path
    if is_there(directory):
        return
    for name in contents.files:
        remove_sealed(directory / name)
    directory.rmdir()  # unless others have written there
