"""What a worker does once its process was told to end, whatever servers do."""

from __future__ import annotations

import threading
import time
from typing import Any, Iterator

import pytest
from kvstore_ext.lane import told_to_end
from kvstore_ext.lane.told_to_end import ToldToEnd

NOTICE = 0.6  # seconds, of which the job has five sixths to come to where it can end
LONG = 20.0


class Unanswered:
    """A worker of the core whose server answers no question; the script ends with `failure`."""

    def __init__(self) -> None:
        self.told = threading.Event()
        self.aborted = threading.Event()
        self.again = threading.Event()  # once a question was given up, and asked anew
        self.reason = ""
        self._given_up: set[int] = set()

    def ask(self, server: int, text: str, data: bytes) -> int:
        if server in self._given_up:
            self.again.set()
        return server

    def is_answered(self, question: int) -> bool:
        return False

    def await_answer(self, question: int, seconds: float) -> tuple[int, bytes, bytes]:
        time.sleep(LONG)
        raise RuntimeError(f"question {question} was not answered")

    def give_up(self, question: int) -> None:
        self._given_up.add(question)

    def failure(self) -> str:
        return self.reason

    def abort(self, reason: str) -> None:
        self.reason = reason
        self.aborted.set()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Unanswered]:
    """Of a process that its `told` tells to end, but for the main thread, which is pytest's."""
    worker = Unanswered()
    monkeypatch.setenv("KVSTORE_EXT_NOTICE", str(NOTICE))
    monkeypatch.setattr(told_to_end, "was_told", worker.told.is_set)
    monkeypatch.setattr(told_to_end.EndSignal, "listen", lambda on_main: None)
    yield worker
    worker.reason = "the test is over"


def test_the_time_to_end_is_kept_while_a_server_answers_nothing(worker: Any) -> None:
    end = ToldToEnd(worker, rank=1, servers=2, left=threading.Event())
    end.offer("store", "/snapshots", 1, lambda: None)
    assert not end.comes_to_end()
    worker.told.set()
    assert worker.aborted.wait(LONG / 2)
    assert worker.reason == (
        "worker 1: told to end by SIGTERM; not all workers have come to their next snapshot in "
        "0.5 s")


def test_nobody_waits_for_snapshots_of_a_store_that_is_closed(worker: Any) -> None:
    end = ToldToEnd(worker, rank=1, servers=2, left=threading.Event())
    end.offer("store", "/snapshots", 1, lambda: None)
    assert not end.comes_to_end()
    end.forget("store")
    worker.told.set()
    assert worker.aborted.wait(LONG / 2)
    assert worker.reason == "worker 1: told to end by SIGTERM"


def test_a_question_that_is_not_answered_is_asked_again(worker: Any) -> None:
    ToldToEnd(worker, rank=0, servers=2, left=threading.Event())
    assert worker.again.wait(LONG / 2)
