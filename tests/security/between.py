"""Somebody on the way of what a process of a job says: all that it sends to others passes here.

It is set up within that process, so that no rules of the kernel's are needed: its ZeroMQ calls
`connect` of libc through a slot of libmxnet.so, which is made to lead here.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import socket
import struct
import subprocess
import threading
from pathlib import Path

import mxnet

_ADDRESS = struct.Struct("=H2s4s8x")  # family, port, address: sockaddr_in
_CONNECT = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_uint, use_errno=True
)

_in_slots: list[object] = []  # which must stay: libmxnet.so does not keep what it calls


class Between:
    """Stands between this process and all that it connects to from now on.

    Attributes
    ----------
    changed
        How many bits it has changed.
    """

    def __init__(self) -> None:
        self.changed = 0
        self._to_change = threading.Semaphore(0)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._ways: dict[bytes, bytes] = {}  # ports that lead here, by the port that was asked for
        self._function = _CONNECT(self._connect)
        _in_slots.append(self._function)
        function = ctypes.cast(self._function, ctypes.c_void_p)
        ctypes.memmove(_slot_of_connect(), ctypes.byref(function), ctypes.sizeof(function))

    def change_a_bit(self) -> None:
        """Of the next large piece of what is sent."""
        self._to_change.release()

    def _connect(self, descriptor: int, address: ctypes._Pointer[ctypes.c_char], size: int) -> int:
        # Whatever goes wrong here would be taken for a connection that was made.
        try:
            family, port, host = _ADDRESS.unpack(address[: _ADDRESS.size])
            if family == socket.AF_INET and port not in self._ways.values():
                if port not in self._ways:
                    self._ways[port] = self._listen(host, port)
                own = _ADDRESS.pack(family, self._ways[port], socket.inet_aton("127.0.0.1"))
                return int(self._libc.connect(descriptor, own, len(own)))
            return int(self._libc.connect(descriptor, address, size))
        except Exception:
            ctypes.set_errno(errno.ECONNREFUSED)
            return -1

    def _listen(self, host: bytes, port: bytes) -> bytes:
        """Leads to a port from another one, which is returned; both as they travel."""
        listener = socket.create_server(("127.0.0.1", 0))
        there = (socket.inet_ntoa(host), int.from_bytes(port, "big"))

        def accept() -> None:
            while True:
                connection, _ = listener.accept()
                try:
                    onwards = socket.create_connection(there)
                except OSError:
                    connection.close()
                    continue
                for ends in ((connection, onwards, True), (onwards, connection, False)):
                    threading.Thread(target=self._lead, args=ends, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return int(listener.getsockname()[1]).to_bytes(2, "big")

    def _lead(self, from_: socket.socket, to: socket.socket, is_sent: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := bytearray(from_.recv(1 << 16)):
                if is_sent and len(piece) > 10_000 and self._to_change.acquire(blocking=False):
                    piece[len(piece) // 2] ^= 1
                    self.changed += 1
                to.sendall(piece)
        for end in (from_, to):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _slot_of_connect() -> int:
    """The address of the slot through which libmxnet.so calls it."""
    (library,) = Path(mxnet.__file__).parent.glob("libmxnet.so")
    listed = subprocess.run(
        ["readelf", "-W", "-r", str(library)], check=True, capture_output=True, text=True
    ).stdout
    offsets = [line.split()[0] for line in listed.splitlines() if " connect@" in line]
    assert len(offsets) == 1, f"libmxnet.so calls connect through {len(offsets)} slots"
    maps = Path("/proc/self/maps").read_text().splitlines()
    base = next(line.partition("-")[0] for line in maps if line.endswith(str(library.resolve())))
    return int(base, 16) + int(offsets[0], 16)
