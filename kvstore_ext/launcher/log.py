"""The log of a process, on the launcher's host.

The file system of a network may not answer for minutes, and whoever writes to it then stands still.
So a thread writes, and what it has no room for is left out.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
import time
from collections import deque
from typing import Callable

from .account import size

# Bytes that wait to be written, at most: the output of a pause of the file system.
_MOST = 1 << 22
# Seconds after which a file system that has not written what it was given is no longer waited for.
_PAUSE = 1.0
# Seconds, at the end, in which all logs of a job are to be written, and then its last figures.
CLOSE_LIMIT = 5.0
_NO_ANSWER = "its file system does not answer"


class Log:
    """Takes what comes in the order in which it comes, and keeps nobody waiting for longer than a
    moment. Thread-safe.

    `lacks` is called once, with why, when something is left out.
    """

    def __init__(self, path: str, lacks: Callable[[str], None]) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # of an earlier job, or a link that somebody has put there
        # At its end, wherever that is: whoever needs the room may empty it meanwhile.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._file = io.FileIO(os.open(path, flags, 0o666), "w")
        self._lacks = lacks
        self._changed = threading.Condition()  # guards all below
        self._pieces: deque[bytes] = deque()
        self._waiting = 0  # bytes in them
        self._writing_since = 0.0  # by time.monotonic(), while it is written to
        self._left_out = 0  # bytes
        self._no_more = False
        self._error_of_end: str | None = None  # "" once the file is closed
        self._thread = threading.Thread(target=self._run, daemon=True, name="log")

    def write(self, data: bytes) -> None:
        with self._changed:
            if self._no_more:
                return
            seconds = max(0.0, self._writing_since + _PAUSE - time.monotonic())
            room = max(0, _MOST - len(data))
            if not self._changed.wait_for(lambda: self._waiting <= room, seconds):
                self._leave_out(len(data), _NO_ANSWER)
                return
            if self._thread.ident is None:
                try:
                    self._thread.start()
                except RuntimeError as error:  # the system lets this user have no more
                    self._leave_out(len(data), str(error))
                    return
            self._waiting += len(data)
            self._pieces.append(data)
            self._changed.notify_all()

    def close(self, latest: float) -> str:
        """Returns what is amiss with the file, or "", once all is written, or at that time at the
        latest, of time.monotonic()."""
        with self._changed:
            self._no_more = True
            self._changed.notify_all()
            if self._thread.ident is None:
                self._run()  # which only closes the file
            seconds = max(0.0, latest - time.monotonic())
            self._changed.wait_for(lambda: self._error_of_end is not None, seconds)
            error = _NO_ANSWER if self._error_of_end is None else self._error_of_end
            if error:
                return f"may lack its end: {error}"
            return f"lacks {size(self._left_out)} of what was printed" if self._left_out else ""

    def _leave_out(self, count: int, why: str) -> None:
        if not self._left_out:
            self._lacks(why)
        self._left_out += count

    def _run(self) -> None:
        while True:
            data = self._await_pieces()
            if not data:
                break
            self._write(memoryview(data))
            with self._changed:
                self._waiting -= len(data)
                self._changed.notify_all()
        error = ""
        try:
            self._file.close()
        except OSError as failure:  # as a network's file system says what it could not write
            error = str(failure.strerror)
        with self._changed:
            self._error_of_end = error
            self._changed.notify_all()

    def _await_pieces(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._no_more)
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._writing_since = time.monotonic()
            return data

    def _write(self, data: memoryview) -> None:
        try:
            while data:
                data = data[self._file.write(data) or 0 :]
        except OSError as error:
            with self._changed:
                self._leave_out(len(data), str(error.strerror))
