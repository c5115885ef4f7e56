"""A connection of somebody who has the job's key, down to its bytes.

It is made as libmxnet's own are (RFC 26, CurveZMQ), so that a test can say what a process would
never say: the same twice, or with another bit.
"""

from __future__ import annotations

import contextlib
import ctypes
import secrets
import socket
import struct

from kvstore_ext.security.curve_hello import ANSWER_BYTES, GREETING, GREETING_BYTES, CurveHello
from mxnet.base import _LIB

from . import strangers

_crypto = ctypes.CDLL("libcrypto.so.3")
for _name in ("EVP_CIPHER_CTX_new", "EVP_aes_256_gcm"):
    getattr(_crypto, _name).restype = ctypes.c_void_p


class Member:
    """Connects and says who it is, as ps-lite's node 77; `handshake` is all that it has said, and
    `admitted` whether that was taken. `more` comes behind its last word, as a part of that."""

    def __init__(self, port: int, secret: bytes, more: bytes = b"") -> None:
        self._port = port
        self._number = 2
        hello = CurveHello(secret)
        self._socket, welcome = _begin(port, hello.frame)
        assert hello.is_answered_by(welcome)
        nonce, box = welcome[10:26], welcome[26:]
        opened = _open_box(box, b"WELCOME-" + nonce, hello._server, hello._secret)
        self._peer, cookie = opened[:32], opened[32:]
        self._key = ctypes.create_string_buffer(32)
        _LIB.crypto_box_beforenm(self._key, self._peer, hello._secret)
        initiate = self._initiate(hello, cookie, more)
        self.handshake = GREETING[:11], GREETING[11:] + hello.frame, initiate
        self._socket.sendall(initiate)
        self._socket.settimeout(strangers.LIMIT)
        self.admitted = False
        with contextlib.suppress(ConnectionError):
            self.admitted = b"\x05READY" in self._socket.recv(1000)

    def _initiate(self, hello: CurveHello, cookie: bytes, more: bytes) -> bytes:
        public, own = ctypes.create_string_buffer(32), secrets.token_bytes(32)
        _LIB.crypto_scalarmult_base(public, own)
        short_public = ctypes.create_string_buffer(32)
        _LIB.crypto_scalarmult_base(short_public, hello._secret)
        nonce = secrets.token_bytes(16)
        plain = short_public.raw + hello._server
        vouch = nonce + _box(plain, b"VOUCH---" + nonce, self._peer, own)
        metadata = strangers.ready(b"ps77")[8:]
        number = struct.pack(">Q", 2)
        plain = public.raw + vouch + metadata
        box = _box(plain, b"CurveZMQINITIATE" + number, self._peer, hello._secret)
        return _frame(b"\x08INITIATE" + cookie + number + box + more, command=True)

    def sealed(self, text: bytes) -> bytes:
        """The next message of this connection."""
        self._number += 1
        number = struct.pack(">Q", self._number)
        text = b"\0" + text
        sealed, tag = ctypes.create_string_buffer(len(text)), ctypes.create_string_buffer(16)
        written, context = ctypes.c_int(), ctypes.c_void_p(_crypto.EVP_CIPHER_CTX_new())
        cipher = ctypes.c_void_p(_crypto.EVP_aes_256_gcm())
        nonce = b"C\0\0\0" + number
        assert _crypto.EVP_EncryptInit_ex(context, cipher, None, self._key, nonce)
        assert _crypto.EVP_EncryptUpdate(context, sealed, ctypes.byref(written), text, len(text))
        assert _crypto.EVP_EncryptFinal_ex(context, tag, ctypes.byref(written))
        assert _crypto.EVP_CIPHER_CTX_ctrl(context, 0x10, 16, tag)
        _crypto.EVP_CIPHER_CTX_free(context)
        return _frame(b"\x07MESSAGE" + number + tag.raw + sealed.raw, command=False)

    def is_connected(self, message: bytes) -> bool:
        """Whether the connection is still there after this has been said."""
        self._socket.settimeout(strangers.QUIET)
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(message)
            try:
                return self._socket.recv(1000) != b""
            except socket.timeout:
                return True
        return False

    def is_ended_by(self, message: bytes) -> bool:
        """Whether the port ends the connection once this has been said."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(message)
            return strangers.is_ended(self._socket)
        return True

    @staticmethod
    def repeats(port: int, handshake: tuple[bytes, bytes, bytes]) -> bool:
        """Whether a port takes a handshake that another connection has begun with."""
        signature, hello, initiate = handshake
        connection, _ = _begin(port, hello[len(GREETING) - len(signature) :])
        with connection, contextlib.suppress(ConnectionError):
            connection.sendall(initiate)
            return b"READY" in connection.recv(1000)
        return False


def _begin(port: int, hello: bytes) -> tuple[socket.socket, bytes]:
    connection = socket.create_connection(("127.0.0.1", port), timeout=strangers.LIMIT)
    connection.sendall(GREETING[: strangers.SIGNATURE_BYTES])
    strangers.receive(connection, GREETING_BYTES)
    connection.sendall(GREETING[strangers.SIGNATURE_BYTES :] + hello)
    return connection, strangers.receive(connection, ANSWER_BYTES)


def _frame(body: bytes, command: bool) -> bytes:
    flags = 4 * command + 2 * (len(body) > 255)
    size = struct.pack(">Q", len(body)) if len(body) > 255 else bytes([len(body)])
    return bytes([flags]) + size + body


def _box(plain: bytes, nonce: bytes, public: bytes, secret: bytes) -> bytes:
    text = bytes(32) + plain
    sealed = ctypes.create_string_buffer(len(text))
    _LIB.crypto_box(sealed, text, ctypes.c_ulonglong(len(text)), nonce, public, secret)
    return sealed.raw[16:]


def _open_box(box: bytes, nonce: bytes, public: bytes, secret: bytes) -> bytes:
    text = bytes(16) + box
    opened = ctypes.create_string_buffer(len(text))
    assert not _LIB.crypto_box_open(
        opened, text, ctypes.c_ulonglong(len(text)), nonce, public, secret
    )
    return opened.raw[32:]
