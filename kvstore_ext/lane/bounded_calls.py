"""What MXNet may do for ever, given up after a time: calls, and operations of its own store."""
from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from typing import Any, Callable, Optional

from .. import _core
from ..errors import ClusterError
from ..launch_reports import report
from ..notes import say
from ..unwritten import write_out


class BoundedCalls:
    """Runs calls of MXNet's that may wait for ever, one at a time, and waits only so long.

    The thread that runs them starts now, because at exit, where the last call is made, Python
    starts none any more. A call that was given up stays behind in it, and later ones fail at once.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._calls: queue.SimpleQueue = queue.SimpleQueue()
        self._given_up = ""  # why; set by who waits, and never taken back
        threading.Thread(target=self._run, daemon=True, name="bounded calls").start()

    def __call__(
        self,
        call: Callable[[], Any],
        on_timeout: Callable[[], str],
        failure: Callable[[], str] = lambda: "",
        seconds: Optional[float] = None,
    ) -> Any:
        """The call's result; raises what it raised, or ClusterError(on_timeout()) in the end: after
        so many seconds, if given, else as many as all calls may take.

        It is given up, too, as soon as failure() returns a reason.
        """
        latest = time.monotonic() + (self._seconds if seconds is None else seconds)
        outcome: queue.SimpleQueue = queue.SimpleQueue()
        self._calls.put((call, outcome))
        while True:
            if self._given_up:
                raise ClusterError(self._given_up)
            try:
                value, error = outcome.get(timeout=0.2)
                break
            except queue.Empty:
                late = time.monotonic() > latest
                self._given_up = failure() or (on_timeout() if late else "")
        if error is not None:
            raise error
        return value

    def _run(self) -> None:
        while True:
            call, outcome = self._calls.get()
            try:
                outcome.put((call(), None))
            except Exception as error:
                outcome.put((None, error))
            del call, outcome  # or what these hold would be held until the next call


# Seconds in which what is on its way still comes, and a script hears of a failure if it can.
LAST_MOMENT = 3.0


def exit_when_stuck(
    worker: _core.Worker, left: threading.Event, waits: Callable[[], bool]
) -> None:
    """Watches a job in which MXNet's own store has operations: after a failure nothing can end
    those, nor wake a script that waits for one.

    Ends the process with status 1 if then one that was counted has not ended, or waits() says that
    the script's thread still waits for all: a push that no pull follows is not counted. It goes on
    looking, for a script that has caught the failure, and then waits. Ends with `left`.
    """

    def watch() -> None:
        while not worker.failure():
            if left.wait(0.5):
                return
        stuck = True  # as far as is known: what is found at the first look has waited since then
        while True:
            if left.wait(LAST_MOMENT):
                return
            before, stuck = stuck, bool(worker.stock_operations()) or waits()
            if before and stuck:
                break
        reason = worker.failure()
        report(failed=reason)
        say(
            f"{reason}; operations on sparse keys have not ended within "
            f"{LAST_MOMENT:g} s after that"
        )
        writing = threading.Thread(target=write_out, daemon=True, name="write out")
        with contextlib.suppress(RuntimeError):  # at exit Python starts none any more
            writing.start()
            writing.join(LAST_MOMENT)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="sparse keys").start()
