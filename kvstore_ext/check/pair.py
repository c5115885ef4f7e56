"""The round trip and the bandwidth from one host to another, over one TCP connection.

The host that is measured to listens; the other connects, as a job's processes do. First the
listener sends a nonce, and the other its HMAC with the token that both know: nobody else is
listened to. Then it sends requests, each a header with a kind and a number:

    PING    the header comes back
    DATA n  n bytes follow; back come the bytes after the first piece and the seconds they took

The listener takes the time of bytes, since a sender only knows when they are in its own buffers.
"""
from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import socketserver
import statistics
import struct
import threading
import time
from dataclasses import dataclass

CONNECT_LIMIT = 5.0  # seconds until a connection counts as one that a firewall drops
_STEP_LIMIT = 10.0  # for anything after that: 64 KiB in 10 s is 0.05 Mbit/s
_NONCE_BYTES = 32
_PIECE = 1 << 20

_HEADER = struct.Struct("!cQ")
_TIMED = struct.Struct("!Qd")
_PING, _DATA = b"P", b"D"

_PINGS = 21
# A transfer that lasts this long has left a connection's slow start behind; the next is twice as
# large until one does, or has the most bytes.
_LONG_ENOUGH = 0.5
_FEWEST_BYTES, _MOST_BYTES = 1 << 16, 1 << 25


class PeerError(Exception):
    """Somebody else than the check listens there, or it knows another token."""


class DataLostError(Exception):
    """Small messages go to and fro, and what fills a network's packets does not arrive."""


@dataclass(frozen=True)
class Measure:
    """From one host to another: seconds of a round trip, and bytes a second."""

    round_trip: float
    bandwidth: float


class Listener(socketserver.ThreadingTCPServer):
    """Lets others measure the way to this host, until it is closed. Serves on threads of its own.

    Raises OSError where it cannot listen at this address and port.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: str, port: int, token: bytes) -> None:
        self.token = token
        super().__init__((address, port), _Answers)
        threading.Thread(target=self.serve_forever, name="check listener", daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """A peer that went away, or was a stranger, is no matter of the listener's."""


def measure(address: str, port: int, token: bytes) -> Measure:
    """Measures the way to a Listener, in about a second.

    Raises
    ------
    PeerError
        Where it does not take the token.
    DataLostError
        Where it answers pings, and has not taken a transfer after _STEP_LIMIT seconds.
    OSError
        Where no connection comes about or it ends; socket.timeout after CONNECT_LIMIT seconds of
        connecting or _STEP_LIMIT of a ping.
    """
    with socket.create_connection((address, port), CONNECT_LIMIT) as connection:
        connection.settimeout(_STEP_LIMIT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            connection.sendall(_proof(token, _receive(connection, _NONCE_BYTES)))
            _ping(connection)
        except (ConnectionError, socket.timeout) as error:
            raise PeerError(f"{address}:{port} does not answer as the check does") from error
        round_trip = statistics.median(_ping(connection) for _ in range(_PINGS))
        return Measure(round_trip, _bandwidth(connection, f"{address}:{port}"))


class _Answers(socketserver.BaseRequestHandler):
    """The listener's end of one connection."""

    server: Listener

    def handle(self) -> None:
        connection: socket.socket = self.request
        connection.settimeout(_STEP_LIMIT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        connection.sendall(nonce)
        proof = _receive(connection, hashlib.sha256().digest_size)
        if not hmac.compare_digest(proof, _proof(self.server.token, nonce)):
            return
        while True:
            header = _receive(connection, _HEADER.size)
            kind, count = _HEADER.unpack(header)
            if kind == _PING:
                connection.sendall(header)
            elif kind == _DATA:
                connection.sendall(_TIMED.pack(*_take(connection, count)))
            else:
                return


def _bandwidth(connection: socket.socket, place: str) -> float:
    # Random, for a tunnel may compress what it carries.
    piece = memoryview(secrets.token_bytes(_PIECE))
    count = _FEWEST_BYTES
    while True:
        try:
            timed, seconds = _transfer(connection, piece, count)
        except socket.timeout as error:
            what = f"has not taken {count} bytes within {_STEP_LIMIT:g} s"
            raise DataLostError(f"{place} answers small messages, and {what}") from error
        if timed and (seconds >= _LONG_ENOUGH or count >= _MOST_BYTES):
            return timed / seconds
        count *= 2


def _transfer(connection: socket.socket, piece: memoryview, count: int) -> tuple[int, float]:
    """What the listener says of `count` bytes: how many it has timed, and the seconds they took."""
    connection.sendall(_HEADER.pack(_DATA, count))
    left = count
    while left:
        connection.sendall(piece[: min(left, _PIECE)])
        left -= min(left, _PIECE)
    timed, seconds = _TIMED.unpack(_receive(connection, _TIMED.size))
    return timed, seconds


def _take(connection: socket.socket, count: int) -> tuple[int, float]:
    """Takes `count` bytes; returns those after the first piece, and the seconds they took."""
    buffer = memoryview(bytearray(_PIECE))
    left, timed, begun = count, 0, 0.0
    while left:
        received = connection.recv_into(buffer[: min(left, _PIECE)])
        if not received:
            raise ConnectionError("the peer has gone")
        if begun:
            timed += received
        else:
            begun = time.perf_counter()
        left -= received
    return timed, max(time.perf_counter() - begun, 1e-9)


def _ping(connection: socket.socket) -> float:
    begun = time.perf_counter()
    connection.sendall(_HEADER.pack(_PING, 0))
    _receive(connection, _HEADER.size)
    return time.perf_counter() - begun


def _receive(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            raise ConnectionError("the peer has gone")
        received += piece
    return bytes(received)


def _proof(token: bytes, nonce: bytes) -> bytes:
    return hmac.new(token, nonce, hashlib.sha256).digest()
