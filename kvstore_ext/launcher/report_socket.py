"""Where a process tells its supervisor what the launcher should know of it.

The socket lies in a directory that is nobody else's, and takes one JSON object a datagram. What a
process may say stands in kvstore_ext/launch_reports.py, which sends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile

from .protocol import Message

NAME = "KVSTORE_EXT_REPORTS"

_LONGEST = 49152  # bytes; with what a supervisor adds, it stays below a StreamReader's line
# Taken in a row, so that a process which says too much does not keep its supervisor from the rest.
_AT_ONCE = 64


class ReportSocket:
    """Listens from its making until `close`; where it cannot, nothing is reported.

    `path` is the socket's, or None.
    """

    def __init__(self) -> None:
        self.path: str | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        # A socket's path has 107 bytes, which TMPDIR alone may take.
        for parent in (tempfile.gettempdir(), "/tmp"):
            with contextlib.suppress(OSError):
                self.path = self._listen_in(tempfile.mkdtemp(prefix="kvstore_ext-", dir=parent))
                return

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> list[Message]:
        """Returns what has come since the last call; drops what is no JSON object, or long."""
        found = []
        for _ in range(_AT_ONCE):
            try:
                data = self._socket.recv(_LONGEST)
            except OSError:  # nothing more, above all
                break
            with contextlib.suppress(ValueError, RecursionError):
                message = json.loads(data.decode())
                if isinstance(message, dict) and len(json.dumps(message)) <= _LONGEST:
                    found.append(message)
        return found

    def close(self) -> None:
        self._socket.close()
        if self.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
                os.rmdir(os.path.dirname(self.path))

    def _listen_in(self, directory: str) -> str:
        path = os.path.join(directory, "socket")
        try:
            self._socket.bind(path)
        except OSError:
            os.rmdir(directory)
            raise
        return path
