"""Where a process tells its supervisor what the launcher should know of it.

The socket lies in a directory that is nobody else's, and takes one JSON object a datagram. What a
process may say stands in kvstore_ext/launch_reports.py, which sends it. A supervisor that is killed
leaves its directory, and the next one on this host removes it: a directory for temporary files may
be shared by hosts, whose sockets cannot be told from abandoned ones.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import socket
import stat
import struct
import tempfile

from .protocol import Message, encode

NAME = "KVSTORE_EXT_REPORTS"

# Bytes, as it comes and as it is passed on, to a launcher that reads lines of 65536.
_LONGEST = 32768
_PREFIX, _NAME = "kvstore_ext-", "socket"  # of the directory, before the host's mark, and in it
_BOOT = "/proc/sys/kernel/random/boot_id"  # no other host's, and none of this host's before
_CREDENTIALS = struct.Struct("3i")  # of a sender, as the kernel knows it: process, user, group
# Taken in a row, so that a process which says too much does not keep its supervisor from the rest.
AT_ONCE = 64


class ReportSocket:
    """Listens from its making until `close`; where it cannot, nothing is reported.

    `path` is the socket's, or None. `joining` is the id of the process that has said last that it
    joins the cluster, None before.
    """

    def __init__(self) -> None:
        self.path: str | None = None
        self.joining: int | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.setblocking(False)
        # A socket's path has 107 bytes, which TMPDIR alone may take; or there is no such directory.
        prefix = f"{_PREFIX}{_mark_of_host()}-"
        for parent in (None, "/tmp"):
            with contextlib.suppress(OSError):
                directory = tempfile.mkdtemp(prefix=prefix, dir=parent)
                self.path = self._listen_in(directory)
                _remove_abandoned(os.path.dirname(directory), prefix)
                return

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> list[Message]:
        """Returns what has come since the last call; what is no JSON object, or too long, is
        dropped."""
        found = []
        for _ in range(AT_ONCE):
            try:
                data, notes, _, _ = self._socket.recvmsg(
                    _LONGEST, socket.CMSG_SPACE(_CREDENTIALS.size)
                )
            except OSError:  # nothing more, above all
                break
            with contextlib.suppress(ValueError, RecursionError):
                message = json.loads(data.decode())
                if isinstance(message, dict) and len(encode(message)) <= _LONGEST:
                    found.append(message)
                    if message.get("joining") is True:
                        self.joining = _CREDENTIALS.unpack(notes[0][2])[0]
        return found

    def close(self) -> None:
        self._socket.close()
        if self.path is not None:
            _remove(self.path)

    def _listen_in(self, directory: str) -> str:
        path = os.path.join(directory, _NAME)
        try:
            self._socket.bind(path)
        except OSError:
            os.rmdir(directory)
            raise
        return path


def _mark_of_host() -> str:
    try:
        with open(_BOOT) as file:
            return file.read(8)
    except OSError:
        return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def _remove_abandoned(parent: str, prefix: str) -> None:
    """Removes this host's sockets in `parent` that nobody listens at."""
    for path in glob.glob(os.path.join(glob.escape(parent), f"{prefix}*", _NAME)):
        if not _is_own(path):
            continue
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                _remove(path)
            except OSError:
                continue  # it is somebody else's, or gone


def _is_own(path: str) -> bool:
    """Whether that is a socket, in a directory that is no link, both of this user: others may put
    something in the place of either."""
    try:
        directory, end = os.lstat(os.path.dirname(path)), os.lstat(path)
    except OSError:
        return False
    kinds = stat.S_ISDIR(directory.st_mode) and stat.S_ISSOCK(end.st_mode)
    return kinds and directory.st_uid == end.st_uid == os.getuid()


def _remove(path: str) -> None:
    """Removes a socket and its directory."""
    with contextlib.suppress(OSError):
        os.unlink(path)
        os.rmdir(os.path.dirname(path))
