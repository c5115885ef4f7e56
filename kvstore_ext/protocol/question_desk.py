"""A server's desk of questions: who answers what a worker's Python asks (questions.py)."""
from __future__ import annotations

import json
import threading
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Tuple

import mxnet as mx

from .. import _core
from ..config import Options

Answer = Tuple[Dict[str, Any], bytes]
Answers = Callable[[Dict[str, Any], bytes], Answer]


class _Answerer(NamedTuple):
    answer: Answers
    waits: bool


class QuestionDesk:
    """A thread that hands each question to the answerer registered under its name.

    It answers one question after the other, in the order in which they came, but for those whose
    answerer waits: these have a thread of their own.
    """

    def __init__(self, server: _core.Server) -> None:
        self._server = server
        self._answerers: Dict[str, _Answerer] = {}  # all of them before `open`, then only read
        self._thread = threading.Thread(target=self._run, daemon=True, name="questions")
        self.register("here", lambda asked, data: ({}, b""))

    def register(self, name: str, answer: Answers, waits: bool = False) -> None:
        """Has answer(asked, data) called for questions of this name, before `open`.

        What it raises is told to the worker that has asked. With `waits`, it may wait for what
        follows from the answers to other questions.
        """
        self._answerers[name] = _Answerer(answer, waits)

    def open(self) -> None:
        """Answers from now on."""
        self._thread.start()

    def join(self) -> None:
        """Returns when nothing is answered any more, once the server's waits have been ended."""
        self._thread.join()

    def _run(self) -> None:
        mx.util.set_np_shape(True)  # of this thread: a slice may have no elements
        for question in iter(self._server.next_question, None):
            try:
                name, asked = json.loads(question.text)
                answerer = self._answerers.get(name, _Answerer(_unknown(name), waits=False))
                if answerer.waits:
                    of_this = (question, answerer.answer, asked)
                    threading.Thread(
                        target=self._reply, args=of_this, daemon=True, name=f"question {name}"
                    ).start()
                    continue
            except Exception as error:  # of a text that is no question, or no thread more
                self._reply(question, _failing(error), {})
            else:
                self._reply(question, answerer.answer, asked)

    def _reply(self, question: _core.Question, answers: Answers, asked: Dict[str, Any]) -> None:
        try:
            answer, data = answers(asked, question.payload())
            text = json.dumps(answer)
        except Exception as error:
            text, data = json.dumps({"error": f"{type(error).__name__}: {error}"}), b""
        try:
            self._server.reply(question, text, data)
        except Exception as error:  # nobody would be answered any more
            self._server.abort(f"a question could not be answered: {error}")


def _unknown(name: str) -> Answers:
    return _failing(LookupError(f"nobody here answers {name!r}"))


def _failing(error: Exception) -> Answers:
    def fail(_asked: Dict[str, Any], _data: bytes) -> Answer:
        raise error

    return fail


class ServerHalf(NamedTuple):
    """A method's half of one server.

    Attributes
    ----------
    answer_on
        Registers who answers the method's questions.
    methods
        What makes its slices in the core, by the first word of a key's method there; nothing for a
        method that the core knows as a codec.
    """

    answer_on: Callable[[_core.Server, QuestionDesk], None]
    methods: Mapping[str, _core.ServerMethod] = {}


# Each makes a half for a server with these options.
MakeHalf = Callable[[Options], ServerHalf]
server_halves: List[MakeHalf] = []


def server_half(make: MakeHalf) -> MakeHalf:
    """Has every server of this process made with this half of a method, from now on."""
    server_halves.append(make)
    return make
