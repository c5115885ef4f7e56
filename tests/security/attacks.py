"""Attacks on the ports of a job that trains."""

from __future__ import annotations

import contextlib
import resource
import secrets
import socket
import threading
from typing import Sequence, TypeVar

from kvstore_ext.security.curve_hello import ANSWER_BYTES

from . import strangers

# Of ps-lite's commands, as its meta.proto has them in a message's fixed part.
_TERMINATE, _ADD_NODE, _BARRIER, _ACKNOWLEDGE = 1, 2, 3, 4
_EVERYBODY = 7
Own = TypeVar("Own")


def _field(number: int, value: bytes | int) -> bytes:
    """One of a protocol buffer, with a number or a short text."""
    if isinstance(value, int):
        return bytes([number << 3]) + _number(value)
    return bytes([number << 3 | 2, len(value)]) + value


def _number(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    if value < 128:
        return bytes([value])
    return bytes([value % 128 + 128]) + _number(value // 128)


def command(number: int, *more: bytes) -> bytes:
    """A message's fixed part, with one of ps-lite's commands."""
    return _field(3, _field(1, number) + b"".join(more)) + _field(4, 1)


def _for_nobody() -> bytes:
    """A message's fixed part, to MXNet's own store, of a customer that there is not."""
    to_mxnet, customer = _field(7, 0), _field(10, 99)
    return _field(4, 1) + to_mxnet + _field(8, 1) + customer


def _invented_node() -> bytes:
    """A server of number 8, at an address of the attacker's."""
    where = _field(3, b"127.0.0.9") + _field(4, 99)
    return _field(2, _field(1, 0) + _field(2, 8) + where)


def asking_for_a_number(host: str, port: int) -> bytes:
    """What a server says to the scheduler when it starts, at this address."""
    none = 2**31 - 1
    where = _field(3, host.encode()) + _field(4, port)
    node = _field(1, 0) + _field(2, none) + where
    return strangers.frames(command(_ADD_NODE, _field(2, node)))


# A large frame, whose announced size wraps when ZeroMQ 4.2.2 adds it to an address.
_WRAPPING = b"\x02" + (2**64 - 100).to_bytes(8, "big") + bytes(range(256)) * 40

FORGED = {
    "wrapping": _WRAPPING,
    "letters": strangers.frames(64 * b"A", 64 * b"B"),
    "terminate": strangers.frames(command(_TERMINATE)),
    "barrier": strangers.frames(command(_BARRIER, _field(3, _EVERYBODY))),
    "for_nobody": strangers.frames(_for_nobody()),
    "add_node": strangers.frames(command(_ADD_NODE, _invented_node())),
}
# What ps-lite drops: nothing has been sent that could be acknowledged.
HARMLESS = command(_ACKNOWLEDGE)
# As whom: the scheduler, of which there is one, a worker, and nobody.
NAMES = (b"ps1", b"ps9", b"stranger")


def forge(port: int, what: str, name: bytes) -> bytes:
    """As `say`, one of FORGED."""
    return say(port, FORGED[what], name)


def say(port: int, frames: bytes, name: bytes) -> bytes:
    """Says what a process of that name would, and returns what is answered to the name.

    Where nothing is, the port has ended the connection.
    """
    own, answer = strangers.greeting(b"NULL"), b""
    connection = socket.create_connection(("127.0.0.1", port), timeout=strangers.LIMIT)
    with connection, contextlib.suppress(ConnectionError):
        connection.sendall(own[: strangers.SIGNATURE_BYTES])
        strangers.receive(connection, strangers.GREETING_BYTES)
        connection.sendall(own[strangers.SIGNATURE_BYTES :] + strangers.ready(name))
        answer = connection.recv(1000)
        connection.sendall(frames)
        with contextlib.suppress(OSError):  # not connected any more
            connection.shutdown(socket.SHUT_WR)
        connection.recv(1000)  # until it has read all
    return answer


def ends(port: int, what: str, name: bytes) -> bool:
    """Whether a port ends the connection of who says one of FORGED, and would go on listening."""
    own = strangers.greeting(b"NULL")
    connection = socket.create_connection(("127.0.0.1", port), timeout=strangers.LIMIT)
    with connection, contextlib.suppress(ConnectionError):
        connection.sendall(own + strangers.ready(name) + FORGED[what])
        return strangers.is_ended(connection)
    return True


def takes_an_old_protocol(port: int) -> bool:
    """Whether a port goes on with who begins with ZeroMQ's first protocol, without a version: with
    an empty name. It has large messages of that written elsewhere."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=strangers.LIMIT)
    with connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"\x01\x00")
        return not strangers.is_ended(connection)
    return False


class _Listener:
    """Listens as a process of a job does, on a thread, while it is entered: `answer` is called for
    each connection, in turn. `at` is its address."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.at = "{}:{}".format(*self._listener.getsockname())
        self._thread = threading.Thread(target=self._run, name="listener")

    def __enter__(self: Own) -> Own:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def answer(self, connection: socket.socket) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.settimeout(self._limit)
                with connection, contextlib.suppress(OSError):
                    self.answer(connection)


class ServerWithoutKey(_Listener):
    """In the place of a process of a job with a key, says at once, to all who connect, a READY that
    is much too long; `ended` counts the connections that they have ended."""

    def __init__(self) -> None:
        super().__init__(strangers.LIMIT)
        self.ended = 0

    def answer(self, connection: socket.socket) -> None:
        body = b"\x05READY" + bytes(8) + secrets.token_bytes(10_000)
        long_command = b"\x06" + len(body).to_bytes(8, "big") + body
        connection.sendall(strangers.greeting(b"CURVE") + long_command)
        with contextlib.suppress(ConnectionError):
            while connection.recv(1000):
                pass
        self.ended += 1


class SecondScheduler(_Listener):
    """Listens as a scheduler does, and answers to everything with a greeting of this mechanism and
    then with what it has been told itself; `heard` is what the last one has said."""

    def __init__(self, mechanism: bytes) -> None:
        super().__init__(limit=1)
        self.heard = b""
        self._mechanism = mechanism

    def answer(self, connection: socket.socket) -> None:
        self.heard = connection.recv(1000)
        connection.sendall(strangers.greeting(self._mechanism))
        self.heard += connection.recv(1000)
        connection.sendall(self.heard[-ANSWER_BYTES :])


class HalfOpen:
    """So many connections to ports, in turn, that say nothing, until `close`; `open` are there."""

    def __init__(self, ports: Sequence[int], count: int) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._connections = [socket.socket() for _ in range(count)]
        self.open = 0
        for number, connection in enumerate(self._connections):
            connection.settimeout(strangers.LIMIT)
            with contextlib.suppress(OSError):
                connection.connect(("127.0.0.1", ports[number % len(ports)]))
                self.open += 1

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


class Flood:
    """Garbage for every port, over and over, until `close`; `sent` is in bytes."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.sent = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ports,), name="flood")
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self, ports: Sequence[int]) -> None:
        own = strangers.greeting(b"CURVE")
        while not self._ended.is_set():
            for port in ports:
                garbage = secrets.token_bytes(1 << 16)
                for words in (garbage, own + garbage, own + b"\x04\xff" + garbage):
                    self._say(port, words)

    def _say(self, port: int, words: bytes) -> None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0) as to:
            to.sendall(words)
            self.sent += len(words)

