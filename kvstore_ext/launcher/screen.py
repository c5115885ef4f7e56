"""What the launcher writes to its own two streams, which nobody need read for the job to go on.

A terminal that Ctrl-S has stopped, or a pager that waits, takes nothing more, and whoever writes to
it stands still. So a thread writes, and what it cannot write any more is left out, also where a
disk is full. What must end the job is a reader who has gone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import threading
from collections import deque

from .account import size

# Bytes that wait to be written, at most: the output of a moment for a reader who is slow.
_MOST = 1 << 22
# Seconds, at the end, in which not a byte has been taken: nobody reads.
_PATIENCE = 5.0
_REDRAWS = 2  # pieces that wait to draw the last line anew, at most
_ERASE = b"\r\x1b[K"  # ANSI: to the line's beginning, and what stands there goes
# Of a pipe or a socket that nobody reads any more.
_NO_READER = (errno.EPIPE, errno.ECONNRESET)


class Screen:
    """Writes in the order in which it is told to, and keeps nobody waiting. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()  # guards all below
        self._pieces: deque[tuple[int, memoryview]] = deque()
        self._waiting = 0  # bytes of processes in them
        self._left_out = 0  # bytes since all was written
        self._refused = 0  # bytes since standard output has taken something, as on a full disk
        self._taken = 0  # bytes so far
        self._error: OSError | None = None
        self._line = b""  # that stands below all the rest, on a terminal
        self._drawn = False  # whether it is there now
        self._at_start = True  # of a line: what processes print as it comes may end in one
        self._thread = threading.Thread(target=self._run, daemon=True, name="screen")

    def write(self, data: bytes) -> None:
        """Shows what processes print; raises OSError once nobody reads standard output."""
        with self._changed:
            if self._error:
                raise self._error
            if self._left_out or self._waiting + len(data) > _MOST:
                self._left_out += len(data)
            else:
                self._waiting += len(data)
                self._add(sys.stdout.fileno(), data)

    def note(self, text: str) -> None:
        """Says something in the launcher's own name, which is never left out."""
        with self._changed:
            self._add(sys.stderr.fileno(), f"launch: {text}\n".encode(errors="replace"))

    def show_line(self, text: str) -> None:
        """Has a terminal show this below all the rest, instead of the last one; "" ends that."""
        with self._changed:
            before, self._line = self._line, text.encode(errors="replace")
            # A piece of nothing draws it anew; a terminal that has been stopped takes none.
            if self._line != before and sum(not piece for _, piece in self._pieces) < _REDRAWS:
                self._add(sys.stderr.fileno(), b"")

    def close(self) -> None:
        """Returns when all is written, or after some seconds in which nobody has read."""
        self.show_line("")
        self._await_written()
        with self._changed:
            self._say_refused()
        self._await_written()

    def _await_written(self) -> None:
        with self._changed:
            taken = -1
            while self._pieces and taken != self._taken:
                taken = self._taken
                self._changed.wait_for(lambda: not self._pieces, _PATIENCE)

    def _add(self, descriptor: int, data: bytes) -> None:
        self._pieces.append((descriptor, memoryview(data)))
        self._changed.notify_all()
        if self._thread.ident is None:
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._pieces))
                descriptor, data = self._pieces[0]
                line = self._line if len(self._pieces) == 1 else b""
            if self._drawn:
                self._drawn = False
                self._write_to_terminal(_ERASE)
            if data:
                self._at_start = data[-1:] == b"\n"
            while data:
                try:
                    count = os.write(descriptor, data)
                except BlockingIOError:  # another process may have set that for both
                    select.select([], [descriptor], [])
                    continue
                except OSError as error:
                    if descriptor == sys.stdout.fileno():
                        self._refuse(len(data), error)
                    break
                data = data[count:]
                with self._changed:
                    self._taken += count
                    if not data and descriptor == sys.stdout.fileno():
                        self._say_refused()
            if line and self._at_start:
                self._write_to_terminal(line)
                self._drawn = True
            self._written()

    def _write_to_terminal(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(sys.stderr.fileno(), data)

    def _refuse(self, count: int, error: OSError) -> None:
        """Standard output has not taken so many bytes."""
        if error.errno == errno.EIO:
            return  # the terminal is gone; a launcher that SIGHUP has not ended goes on
        with self._changed:
            if error.errno in _NO_READER:
                self._error = error
                return
            if not self._refused:
                self.note(
                    f"standard output takes nothing: {error.strerror}; the job goes on, and what "
                    "is printed until it does is only in the logs"
                )
            self._refused += count

    def _say_refused(self) -> None:
        if self._refused:
            missing, self._refused = size(self._refused), 0
            self.note(f"standard output lacks {missing} of what was printed; the logs have it")

    def _written(self) -> None:
        with self._changed:
            descriptor, data = self._pieces.popleft()
            if descriptor == sys.stdout.fileno():
                self._waiting -= len(data)
            if not self._pieces and self._left_out:
                missing, self._left_out = size(self._left_out), 0
                self.note(f"{missing} of output was not shown, as nobody read on; the logs have it")
            self._changed.notify_all()
