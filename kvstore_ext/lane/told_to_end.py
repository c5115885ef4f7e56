"""A job of which a process was told to end: it does so in order, with snapshots if it takes any."""
from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, Dict, Tuple

from .. import _core
from ..errors import KVStoreError
from ..launch_reports import report
from ..notes import printable, say
from ..protocol.end_board import QUESTION
from ..protocol.end_signal import TOLD, EndSignal, time_to_end, was_told
from ..protocol.questions import Question, answer_to, ask
from .end_of_script import BETWEEN_LOOKS, EndOfScript

_BETWEEN_QUESTIONS = 1.0
_ASK_ANEW = 25.0  # seconds after a question that was not answered
_LAST_WORDS = 2.0  # for the script of a worker that was told, which may be where nothing wakes it


class ToldToEnd(EndOfScript):
    """A worker's part. The script's thread calls `comes_to_end` and `end`; one of its own asks
    servers, and waits for none of their answers.

    Parameters
    ----------
    worker, rank, servers
        The worker, its rank, and how many servers there are.
    left
        Set when the worker leaves the job.
    """

    def __init__(
        self, worker: _core.Worker, rank: int, servers: int, left: threading.Event
    ) -> None:
        super().__init__(rank)
        self._time_to_end = time_to_end()
        self._worker = worker
        self._asked = range(servers if rank == 0 else 1)  # rank 0 takes their news to server 0
        self._open: Dict[int, Tuple[Question, float]] = {}  # by server, and since when
        self._left = left
        self._told = ""  # who was, in words
        self._since = 0.0
        self._changed = threading.Condition()  # guards all below
        self._steps = 0  # after which a snapshot could be taken, so far
        self._stop_at = 0  # the one beyond which the script may not go without knowing the next
        self._end_at = 0  # the one after which all end
        EndSignal.listen(self._on_main)
        self._asking = threading.Thread(target=self._watch, daemon=True, name="told to end")
        self._asking.start()

    def stop(self, seconds: float) -> None:
        """Waits so long at most for its own thread, once the worker is hushed, which ends it.

        Python ends threads that come back from C++ while it is wound down, which ends the process
        by SIGABRT.
        """
        self._asking.join(seconds)

    def comes_to_end(self) -> bool:
        """Counts a step after which all workers could take a snapshot; whether the job ends with
        it. Waits for the other workers' words, or a failure, where that must be known first."""
        with self._changed:
            self._steps += 1
            if not self._stop_at or self._steps < self._stop_at:
                return False
            while not self._end_at and not self._worker.failure():
                self._changed.wait(BETWEEN_LOOKS)
            self.in_order = self._steps == self._end_at
            return self.in_order

    def _is_over(self) -> bool:
        return self._left.is_set() or bool(self._worker.failure())

    def _watch(self) -> None:
        next_question = 0.0
        while not self._left.wait(BETWEEN_LOOKS) and not self._worker.failure():
            if was_told() and not self._told:
                self._hear(f"worker {self._rank}: {TOLD}")
            self._take_answers()
            if self._told or time.monotonic() > next_question:
                next_question = time.monotonic() + _BETWEEN_QUESTIONS
                self._ask()
            if self._told:
                self._give_up_in_time()

    def _ask(self) -> None:
        asked = {
            "told": self._told, "rank": self._rank, "at": self._stop_at, "ends": self.in_order,
        }
        for server in set(self._asked) - set(self._open):
            self._open[server] = ask(self._worker, server, QUESTION, asked), time.monotonic()

    def _take_answers(self) -> None:
        """Takes those that have come: while a server gives none, time goes on."""
        for server, (question, since) in list(self._open.items()):
            if self._worker.is_answered(question.number):
                del self._open[server]
                with contextlib.suppress(KVStoreError):  # of a server that others miss as well
                    answer, _ = answer_to(self._worker, question)
                    self._take(answer)
            elif time.monotonic() - since >= min(_ASK_ANEW, self._time_to_end):
                del self._open[server]
                self._worker.give_up(question.number)

    def _take(self, answer: Dict[str, Any]) -> None:
        told, at = answer["told"], answer["at"]
        if told and not self._told:
            text = printable(str(told))
            report(failed=text)  # the launcher need not show that of all
            self._hear(text)
        if at and type(at) is int:
            with self._changed:
                self._end_at = at
                self._changed.notify_all()

    def _hear(self, told: str) -> None:
        self._told, self._since = told, time.monotonic()
        with self._changed:
            if self._snapshots:
                self._stop_at = self._steps + 1
        if self._stop_at:
            say(f"{told}; the job ends after a snapshot")
        elif not was_told():  # whose script ends by itself, and says so
            say(f"{told}; the job ends")

    def _give_up_in_time(self) -> None:
        passed = time.monotonic() - self._since
        if not self._stop_at:
            if not was_told() or passed > _LAST_WORDS:
                self._worker.abort(self._told)
        elif passed > self._time_to_end and not self.in_order:
            self._worker.abort(
                f"{self._told}; not all workers have come to their next snapshot in "
                f"{self._time_to_end:g} s"
            )
