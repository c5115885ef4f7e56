"""The file with a job's figures, on the launcher's host.

It is its user's alone, and always whole. As with logs, a file system that does not answer keeps
nobody waiting: a thread writes, and passes over figures that have newer ones.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading

from .status import Row


class StatusFile:
    """Holds the newest of the rows that it was given, sooner or later. Thread-safe."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._changed = threading.Condition()  # guards all below
        self._newest: Row | None = None  # None: it is written, or about to be
        self._is_writing = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="status file")

    def write(self, row: Row) -> None:
        """Takes a row that nobody changes."""
        with self._changed:
            self._newest = row
            if self._thread.ident is None:
                with contextlib.suppress(RuntimeError):  # the system lets this user have no more
                    self._thread.start()
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Returns once all is written, or after so many seconds."""
        with self._changed:
            if self._thread.ident is not None:
                self._changed.wait_for(lambda: not self._newest and not self._is_writing, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._newest is not None)
                row, self._newest, self._is_writing = self._newest, None, True
            # A disk that is full ends no job: who looks sees how old the figures are.
            with contextlib.suppress(OSError):
                self._replace(json.dumps(row))

    def _replace(self, text: str) -> None:
        new = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            file.write(text)
        os.replace(new, self._path)
