"""What Python reads of what others send, or of files: each raises its own error, and no other."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
from kvstore_ext.errors import KVStoreError
from kvstore_ext.launcher import proof
from kvstore_ext.launcher.account import Account
from kvstore_ext.launcher.protocol import Link
from kvstore_ext.launcher.report_socket import ReportSocket
from kvstore_ext.optimizer.optimizer_format import unpack_optimizer
from kvstore_ext.optimizer.state_answers import answers_of
from kvstore_ext.protocol.end_board import EndBoard
from kvstore_ext.protocol.handover import Shelf
from kvstore_ext.protocol.question_desk import QuestionDesk
from kvstore_ext.snapshots.manifest import read_manifest
from kvstore_ext.snapshots.part import SnapshotError
from kvstore_ext.snapshots.sealed_files import check_sealed, seal_of

TOKEN = "0123456789abcdef"
_loop = asyncio.new_event_loop()
_directory = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))


class _Writer:
    """A connection on which nobody listens."""

    def write(self, data: bytes) -> None:
        pass


def _stream(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(loop=_loop)
    reader.feed_data(data)
    reader.feed_eof()
    return reader


def supervisor(data: bytes) -> None:
    """What a supervisor says to the launcher, to its end."""

    async def follow() -> None:
        link: Any = Link(_stream(data), _Writer())  # type: ignore[arg-type]
        await link.greeting(lambda line: None)
        while await link.receive() is not None:
            pass

    _loop.run_until_complete(follow())


def launchers_proof(data: bytes) -> None:
    """Who says to the launcher that he is a task."""
    with contextlib.suppress(ValueError, OSError):
        writer: Any = _Writer()
        _loop.run_until_complete(proof.recognise(_stream(data), writer, TOKEN))
        raise AssertionError("a stranger was recognised")


def tasks_proof(data: bytes) -> None:
    """Who answers to a task as its launcher."""
    own, other = socket.socketpair()
    with own, other, contextlib.suppress(ValueError, OSError):
        other.sendall(data[:5000])
        other.shutdown(socket.SHUT_WR)
        proof.introduce(own, 3, TOKEN, 1)
        raise AssertionError("a stranger was recognised")


def reports(data: bytes) -> None:
    """What a process tells its supervisor, and that the launcher."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(data[:100000], str(_reports.path))

    async def take() -> None:
        account = Account()
        for fact in _reports.receive():
            account.take(fact)

    _loop.run_until_complete(take())


def optimizer(data: bytes) -> None:
    """An optimizer on its way to a server."""
    with contextlib.suppress(KVStoreError):
        unpack_optimizer(data.decode(errors="surrogateescape"), ())


class _Lane:
    """A server of the core that has one question."""

    def __init__(self, text: str, data: bytes) -> None:
        self.text = text
        self._data = data
        self._questions = [self]
        self.answers = 0

    def next_question(self) -> Any:
        return self._questions.pop() if self._questions else None

    def payload(self) -> bytes:
        return self._data

    def reply(self, question: Any, text: str, data: bytes) -> None:
        json.loads(text)
        self.answers += 1


class _Keeper:
    """Has one state."""

    def __init__(self) -> None:
        self._state: Any = (mx.nd.ones((3, 2)), 0.5)

    def state(self, place: Tuple[int, ...]) -> Tuple[Any, int]:
        if place != (1, 0):
            raise KeyError(place)
        return self._state, 7

    def set_state(self, place: Tuple[int, ...], state: Any, count: int) -> None:
        self._state = state


def questions(data: bytes) -> None:
    """What a worker asks of a server: it is answered, whatever it is."""
    text, _, payload = data.partition(b"\0")
    lane: Any = _Lane(text.decode(errors="surrogateescape"), payload)
    desk = QuestionDesk(lane)
    desk.register("end", EndBoard(2).answer)
    desk.register("handover", Shelf().answer)
    desk.register("slice state", answers_of(_Keeper()))
    desk.open()  # on a thread, as a server does, whose shapes MXNet takes otherwise from then on
    desk.join()
    assert lane.answers == 1


def manifest(data: bytes) -> None:
    """The manifest of a snapshot, and the seal of a file."""
    (_directory / "manifest.json").write_bytes(data)
    (_directory / "manifest.json.sha256").write_bytes(data)
    with contextlib.suppress(SnapshotError):
        read_manifest(_directory)
    seal = seal_of(_directory / "manifest.json")
    if seal is not None:
        with contextlib.suppress(SnapshotError):
            check_sealed(_directory / "manifest.json", seal)


_reports = ReportSocket()
TARGETS: Dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        supervisor, launchers_proof, tasks_proof, reports, optimizer, questions, manifest,
    )
}
