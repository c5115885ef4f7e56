"""What a worker asks a server's Python, and what it is answered (question_desk.py)."""
from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

from .. import _core
from ..errors import ClusterError, KVStoreError

TRACE = "trace"  # asked by lane/tracer.py of server/tracing.py

_BETWEEN_LOOKS = 0.2  # seconds

_Asked = TypeVar("_Asked")
_Found = TypeVar("_Found")


class Question(NamedTuple):
    """One that is on its way: the core's number of it, and who is asked on the server."""

    number: int
    name: str


class Answer(Dict[str, Any]):
    """What a server says; who looks for what it does not say hears which server that was."""

    def __init__(self, fields: Dict[str, Any], server: int, name: str) -> None:
        super().__init__(fields)
        self._who = f"server {server} has answered question {name!r}"

    def __missing__(self, field: str) -> Any:
        found = ", ".join(sorted(self)) or "nothing"
        raise ClusterError(f"{self._who} without {field!r}; found {found[:200]}")


def ask(
    worker: _core.Worker, server: int, name: str, asked: Dict[str, Any], data: bytes = b""
) -> Question:
    """Asks whoever answers to this name on a server; returns at once."""
    return Question(worker.ask(server, json.dumps([name, asked]), data), name)


def answer_to(worker: _core.Worker, question: Question) -> Tuple[Dict[str, Any], bytes]:
    """Waits for the answer to a question.

    Raises
    ------
    ClusterError
        Where none comes in time, or one that no server of kvstore_ext gives; it names the server,
        as the other one does.
    KVStoreError
        Where the server could not do what it was asked.
    """
    found: Optional[Tuple[int, bytes, bytes]] = None
    try:
        while found is None:  # in between Python hears Ctrl-C
            found = worker.await_answer(question.number, _BETWEEN_LOOKS)
    except RuntimeError as error:
        raise ClusterError(str(error)) from None
    finally:
        if found is None:
            worker.give_up(question.number)
    server, text, data = found
    answer = _read(server, question.name, text)
    if "error" in answer:
        raise KVStoreError(f"server {server} could not do what it was asked: {answer['error']}")
    return answer, data


def answers_to(
    worker: _core.Worker, questions: Sequence[Question]
) -> List[Tuple[Dict[str, Any], bytes]]:
    """Waits for the answers to several questions, in their order; raises as `answer_to` for the
    first that fails, and gives the others up."""
    return all_of(
        questions,
        lambda question: answer_to(worker, question),
        lambda question: worker.give_up(question.number),
    )


def all_of(
    asked: Sequence[_Asked],
    wait: Callable[[_Asked], _Found],
    give_up: Callable[[_Asked], object],
) -> List[_Found]:
    """Waits for one after the other; where that raises, gives up it and all later ones."""
    found: List[_Found] = []
    try:
        for each in asked:
            found.append(wait(each))
    finally:
        for each in asked[len(found) :]:
            give_up(each)
    return found


def _read(server: int, name: str, text: bytes) -> Answer:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ClusterError(
            f"server {server} has answered question {name!r} with {text[:60]!r}; it must be a "
            "JSON object"
        )
    return Answer(fields, server, name)
