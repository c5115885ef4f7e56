"""Values of keys that an optimizer on the servers makes: put back, into any number of servers."""
from __future__ import annotations

from typing import Any, Dict

import mxnet as mx

from .. import _core
from ..config import Options
from ..keys.key_parts import Parted
from ..protocol.question_desk import Answer, Answers, QuestionDesk, ServerHalf, server_half
from ..protocol.questions import answers_to, ask
from .native_updater import NativeUpdater

_QUESTION = "slice value"
ROWS = "rows value"


def answer_on(server: _core.Server, desk: QuestionDesk) -> None:
    """Has a server take the value of a slice."""

    def answer(asked: Dict[str, Any], data: bytes) -> Answer:
        _, key, index = asked["place"]
        server.set_value(key, index, data)
        return {}, b""

    desk.register(_QUESTION, answer)


def takes_rows(native: NativeUpdater) -> Answers:
    """What has a server take the sum of a sparse key's next pushes for its value."""

    def answer(asked: Dict[str, Any], _data: bytes) -> Answer:
        native.assign(tuple(asked["place"]))
        return {}, b""

    return answer


@server_half
def make_half(_options: Options) -> ServerHalf:
    """Every server answers so."""
    return ServerHalf(answer_on)


def put_value(worker: _core.Worker, key: Parted, value: mx.nd.NDArray) -> None:
    """Gives a dense key on the servers another value, of its shape and type. Nobody may have an
    operation on the key, nor a result that it has not pulled."""
    whole = value.asnumpy().reshape(-1)
    asked = []
    for part in key.parts():
        data = whole[part.begin : part.begin + part.shape[0]].tobytes()
        asked.append(ask(worker, part.server, _QUESTION, {"place": part.place}, data))
    answers_to(worker, asked)


def expect_rows(worker: _core.Worker, key: Parted) -> None:
    """Has servers take the sum of a sparse key's next pushes, one of each worker, for its value."""
    asked = [ask(worker, part.server, ROWS, {"place": part.place}) for part in key.parts()]
    answers_to(worker, asked)
