"""What somebody does who reaches the ports of a job and is none of it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import socket
from pathlib import Path
from typing import Iterable

from kvstore_ext.security.curve_hello import (
    GREETING,
    GREETING_BYTES,
    SIGNATURE_BYTES,
    CurveHello,
    receive,
)

LIMIT = 20.0  # seconds in which a port that refuses has ended the connection
QUIET = 1.5  # the same, of what is known to be read at once
_LISTENS = "0A"  # as /proc/net/tcp has it
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438  # of <asm/unistd_64.h>


def ports_of(processes: Iterable[int]) -> list[int]:
    """The TCP ports on which these processes listen."""
    sockets = set()
    for process in processes:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                found = re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink()))
                sockets.update(found.groups() if found else ())
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [line for line in lines if line[3] == _LISTENS and line[9] in sockets]
    return sorted(int(line[1].split(":")[1], 16) for line in listening)


def cut_connections(process: int) -> int:
    """Ends all TCP connections of a process, as a network does that fails for a moment; returns how
    many there were. By root, or who has started the process."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.syscall(_PIDFD_OPEN, process, 0)
    assert handle >= 0, os.strerror(ctypes.get_errno())
    cut = 0
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            if not str(descriptor.readlink()).startswith("socket:"):
                continue
            taken = libc.syscall(_PIDFD_GETFD, handle, int(descriptor.name), 0)
            if taken < 0 and ctypes.get_errno() == errno.EBADF:
                continue  # it has been closed meanwhile
            assert taken >= 0, os.strerror(ctypes.get_errno())
            with socket.socket(fileno=taken) as connection:
                if connection.family == socket.AF_INET and connection.getpeername():
                    connection.shutdown(socket.SHUT_RDWR)
                    cut += 1
    os.close(handle)
    return cut


def greeting(mechanism: bytes) -> bytes:
    """ZMTP 3.0's, of a client that would be known in this way."""
    return GREETING[:12] + mechanism.ljust(20, b"\0") + bytes(32)


def ready(identity: bytes) -> bytes:
    """What a ZeroMQ DEALER of this name says behind its greeting, where nobody has to be known."""
    properties = [(b"Socket-Type", b"DEALER"), (b"Identity", identity)]
    body = b"\x05READY" + b"".join(
        bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value
        for name, value in properties
    )
    return bytes([4, len(body)]) + body


def frames(*parts: bytes) -> bytes:
    """A ZeroMQ message of short parts."""
    *others, last = parts
    return b"".join(bytes([1, len(part)]) + part for part in others) + bytes([0, len(last)]) + last


def hello(secret: bytes) -> bytes:
    """CURVE's first word, of somebody who takes this for the secret of the job's sockets."""
    return CurveHello(secret).frame


def is_ended(connection: socket.socket) -> bool:
    """Whether the other end ends a connection, whatever it says before."""
    connection.settimeout(LIMIT)
    with contextlib.suppress(ConnectionError):
        try:
            while connection.recv(1000):
                pass
        except socket.timeout:
            return False
    return True


def say(port: int, mechanism: bytes, words: bytes) -> bytes:
    """All that a port answers, behind its greeting, to one who says these words behind his own;
    returns when it has ended the connection."""
    own, answer = greeting(mechanism), b""
    connection = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
    with connection, contextlib.suppress(ConnectionError):
        connection.sendall(own[:SIGNATURE_BYTES])
        receive(connection, GREETING_BYTES)
        connection.sendall(own[SIGNATURE_BYTES:] + words)
        while came := connection.recv(1000):
            answer += came
    return answer
