"""Notices that the job's scheduler is gone. The job goes on: once it stands, nothing needs one."""
from __future__ import annotations

import contextlib
import socket
import time

from .. import _core
from ..notes import say

# Seconds. Signs of life come once a second; after so much silence it is worth asking the system.
_SUSPICIOUS = 3.0
_BETWEEN_LOOKS = 1.0


class SchedulerWatch:
    """Looks after the scheduler for a worker or a server. Called by one thread.

    Parameters
    ----------
    link
        The process's own to the scheduler.
    address
        The scheduler's, host:port.
    silence
        Seconds without a sign of life after which it counts as gone; where its port is closed, it
        does at once.
    """

    def __init__(self, link: _core.SchedulerLink, address: str, silence: float) -> None:
        self.gone = ""  # why, in words that go behind "the scheduler"
        self._link = link
        self._address = address
        self._most = silence
        self._next_look = 0.0

    def look(self, process: str) -> None:
        """Says once, on standard error, that the scheduler is gone; call it now and then.

        `process` is who says so, such as "worker 1".
        """
        if self.gone or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _BETWEEN_LOOKS
        silence = self._link.silence()
        if silence < min(_SUSPICIOUS, self._most / 2):
            return
        if self._refuses():
            self.gone = f"at {self._address} is gone: its port is closed"
        elif silence > self._most:
            self.gone = f"at {self._address} has not been heard of for {self._most:g} s"
        if self.gone:
            self._link.close()
            say(
                f"{process}: the scheduler {self.gone}; the job goes on without it, "
                "and ends in order"
            )

    def _refuses(self) -> bool:
        host, port = self._address.rsplit(":", 1)
        with contextlib.suppress(OSError):
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
            except ConnectionRefusedError:
                return True
        return False
