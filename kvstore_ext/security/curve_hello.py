"""The first words of a connection to one of the job's sockets, as a client says them.

That is ZMTP 3.0's greeting (RFC 23), then CURVE's HELLO, which can be made, and its WELCOME, which
can be opened, only with the public key of the server's socket (RFC 26). Jobs keep that to
themselves.
"""
from __future__ import annotations

import ctypes
import secrets
import socket
import struct
import time
from typing import Tuple

from mxnet.base import _LIB

_KEY_BYTES = 32
_ZEROS = bytes(32)  # before the plain bytes of a box; 16 of them before the sealed ones
_COMMAND = 0x04  # the flag of a frame that is one, and short
_WELCOME_BYTES = 168

SIGNATURE_BYTES = 11  # of the greeting, with the version: ZeroMQ 4.2 waits for it before it goes on
GREETING_BYTES = 64
MECHANISM = b"CURVE"
NONE = b"NULL"  # the mechanism of who encrypts nothing
GREETING = (
    b"\xff" + bytes(7) + b"\x01\x7f" + bytes([3, 0]) + MECHANISM.ljust(20, b"\0") + bytes(32)
)
ANSWER_BYTES = 2 + _WELCOME_BYTES  # of the frame with the WELCOME


def mechanism_of(greeting: bytes) -> bytes:
    """The name of the way in which the sender of a greeting knows others: NULL, PLAIN, CURVE."""
    return greeting[12:32].rstrip(b"\0")


def receive(connection: socket.socket, count: int) -> bytes:
    """So many bytes, or fewer where the other end has ended the connection.

    Raises socket.timeout where they have not come within the connection's timeout, together.
    """
    limit, received = connection.gettimeout(), b""
    latest = None if limit is None else time.monotonic() + limit
    while len(received) < count:
        if latest is not None:
            connection.settimeout(max(0.001, latest - time.monotonic()))
        piece = connection.recv(count - len(received))
        if not piece:
            break
        received += piece
    connection.settimeout(limit)
    return received


class CurveHello:
    """One HELLO, and the look at what answers it.

    Parameters
    ----------
    server_secret
        Of the socket that it goes to, 32 bytes.
    """

    def __init__(self, server_secret: bytes) -> None:
        public = ctypes.create_string_buffer(_KEY_BYTES)
        _LIB.crypto_scalarmult_base(public, server_secret)
        self._server = public.raw
        own_public, self._secret = _key_pair()
        number = struct.pack(">Q", 1)
        box = _box(bytes(64), b"CurveZMQHELLO---" + number, self._server, self._secret)
        hello = b"\x05HELLO\x01\x00" + bytes(72) + own_public + number + box
        self.frame = bytes([_COMMAND, len(hello)]) + hello

    def is_answered_by(self, frame: bytes) -> bool:
        """Whether ANSWER_BYTES that have come are the WELCOME of a server with that secret."""
        start = bytes([_COMMAND, _WELCOME_BYTES]) + b"\x07WELCOME"
        if len(frame) != ANSWER_BYTES or not frame.startswith(start):
            return False
        body = frame[len(start) :]
        sealed = bytes(16) + body[16:]
        nonce = b"WELCOME-" + body[:16]
        opened = ctypes.create_string_buffer(len(sealed))
        size = ctypes.c_ulonglong(len(sealed))
        return not _LIB.crypto_box_open(opened, sealed, size, nonce, self._server, self._secret)


def _key_pair() -> Tuple[bytes, bytes]:
    secret = secrets.token_bytes(_KEY_BYTES)
    public = ctypes.create_string_buffer(_KEY_BYTES)
    _LIB.crypto_scalarmult_base(public, secret)
    return public.raw, secret


def _box(plain: bytes, nonce: bytes, public: bytes, secret: bytes) -> bytes:
    text = _ZEROS + plain
    sealed = ctypes.create_string_buffer(len(text))
    _LIB.crypto_box(sealed, text, ctypes.c_ulonglong(len(text)), nonce, public, secret)
    return sealed.raw[16:]
