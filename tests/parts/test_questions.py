"""What a server's Python makes of questions that no worker asks."""

from __future__ import annotations

import json
from typing import Any, Iterator

import mxnet as mx
import pytest
from kvstore_ext import ClusterError, KVStoreError, _core
from kvstore_ext.protocol.digest_board import DigestBoard
from kvstore_ext.protocol.end_board import EndBoard
from kvstore_ext.protocol.questions import answer_to, answers_to, ask


@pytest.fixture(scope="module")
def worker() -> Iterator[_core.Worker]:
    """A lane to a server in this process."""
    store = mx.kv.create("p3")
    yield store._lane.worker
    store.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "3",
        "[]",
        '["here"]',
        '["here", {}, {}]',
        '[["here"], {}]',
        '[{"here": 1}, {}]',
        '["nobody answers this", {}]',
        '["slice state", 3]',
        '["slice state", {"place": [1, 2]}]',
        '["slice state", {"place": [0, 0, 0], "outline": ["array", "O", [1]], "count": 1}]',
        '["slice value", {"place": [0, 1099511627776, 0]}]',
        '["handover", {}]',
        "[" * 100000,
        b"\xff\xfe",
    ],
    ids=lambda text: repr(text[:40]),
)
def test_a_question_that_no_worker_asks_is_answered_with_an_error(
    worker: _core.Worker, text: str
) -> None:
    answered = worker.await_answer(worker.ask(0, text, b"12345678"))
    assert answered is not None
    assert "error" in json.loads(answered[1])
    assert answer_to(worker, ask(worker, 0, "here", {})) == ({}, b"")  # nothing has ended of it


def test_the_end_is_known_from_those_alone_who_are_in_the_job() -> None:
    board = EndBoard(2)
    for rank in (-1, 0, 2, 7):
        answer, _ = board.answer({"told": "", "at": 5, "rank": rank, "ends": False}, b"")
        assert answer["at"] == 0
    asked = {"told": "", "at": 4, "rank": 1, "ends": False}
    assert board.answer(asked, b"")[0]["at"] == 5
    assert not board.ends
    board.answer({**asked, "ends": True}, b"")
    board.answer(asked, b"")
    assert board.ends


@pytest.mark.parametrize(
    "forged",
    [{"told": 3}, {"at": "5"}, {"at": True}, {"at": -1}, {"rank": "0"}, {"rank": None},
     {"ends": "no"}, {"told": "worker 0", "ends": None}],
)
def test_nothing_of_what_no_worker_says_of_the_end_stays(forged: dict[str, Any]) -> None:
    board = EndBoard(1)
    asked = {"told": "", "at": 0, "rank": 0, "ends": False}
    with pytest.raises(ValueError, match="true or false; found"):
        board.answer({**asked, "at": 7, **forged}, b"")
    assert board.answer(asked, b"")[0] == {"told": "", "at": 0}
    assert not board.ends


def test_who_was_told_is_said_without_control_characters() -> None:
    board = EndBoard(1)
    board.answer({"told": "worker 0\x1b[2J: told", "at": 0, "rank": 0, "ends": False}, b"")
    assert board.told == "worker 0?[2J: told"


@pytest.mark.parametrize(
    "forged",
    [
        {"rank": 2}, {"rank": -1}, {"rank": "0"}, {"store": None}, {"step": [4]},
        {"keys": ["a"]}, {"keys": [["a"], "b"]}, {"keys": ["a", "b", "c"]}, {"keys": "ab"},
        {"keys": 2}, {"host": None}, {"host": None, "step": 3},
    ],
    ids=str,
)  # fmt: skip
def test_digests_that_no_worker_sends_hide_no_drift(forged: dict[str, Any]) -> None:
    said: list[str] = []
    board = DigestBoard(2, said.append)
    asked = {"store": 0, "step": 4, "rank": 0, "host": "node0", "keys": ["a", "b"]}
    board.answer(asked, bytes([1] * 8))
    with pytest.raises(ValueError, match=r"it must be|are no digests"):
        board.answer({**asked, **forged}, bytes([2] * 8))
    assert said == []
    board.answer({**asked, "rank": 1, "host": "node\ud800"}, bytes([1] * 4 + [3] * 4))
    assert "after step 4 key b is not that of worker 0" in said[0]
    assert "(worker 1 on node?)" in said[0]


class Forging:
    """A worker of the core to whom somebody answers in a server's place."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def ask(self, server: int, text: str, data: bytes) -> int:
        self.server = server
        return 7

    def await_answer(self, question: int, seconds: float) -> tuple[int, bytes, bytes]:
        assert question == 7
        return self.server, self._answer, b""


class Interrupted:
    """A worker of the core that nobody answers, and whose user presses Ctrl-C."""

    def __init__(self) -> None:
        self.looks = 0
        self.given_up: list[int] = []

    def ask(self, server: int, text: str, data: bytes) -> int:
        return 7

    def await_answer(self, question: int, seconds: float) -> None:
        assert seconds <= 1
        self.looks += 1
        if self.looks == 3:
            raise KeyboardInterrupt

    def give_up(self, question: int) -> None:
        self.given_up.append(question)


def test_who_waits_for_an_answer_hears_ctrl_c() -> None:
    worker: Any = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        answer_to(worker, ask(worker, 3, "handover", {}))
    assert (worker.looks, worker.given_up) == (3, [7])


@pytest.mark.parametrize(
    "answer", [b"", b"no json", b"\xff\xfe", b"3", b"[]", b"null", b"[" * 100000],
    ids=lambda text: repr(text[:10]),
)
def test_an_answer_that_no_server_gives_is_an_error_that_names_it(answer: bytes) -> None:
    worker: Any = Forging(answer)
    with pytest.raises(ClusterError, match=r"^server 3 has answered question 'handover' with"):
        answer_to(worker, ask(worker, 3, "handover", {}))


def test_so_is_one_without_what_was_asked_for() -> None:
    worker: Any = Forging(b'{"told": ""}')
    answer, _ = answer_to(worker, ask(worker, 3, "end", {}))
    assert answer["told"] == ""
    with pytest.raises(ClusterError, match=r"^server 3 has .* 'end' without 'at'; found told"):
        answer["at"]


def test_answers_come_in_the_order_of_their_questions(worker: _core.Worker) -> None:
    questions = [ask(worker, 0, "here", {}) for _ in range(3)]
    assert answers_to(worker, questions) == [({}, b"")] * 3


def test_where_one_answer_is_an_error_nobody_waits_for_the_others(worker: _core.Worker) -> None:
    questions = [ask(worker, 0, name, {}) for name in ("here", "nobody answers this", "here")]
    with pytest.raises(KVStoreError, match="nobody answers this"):
        answers_to(worker, questions)
    answer_to(worker, ask(worker, 0, "here", {}))  # which comes behind the others
    assert not worker.is_answered(questions[-1].number)
