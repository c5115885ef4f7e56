"""How a server's or the scheduler's process ends: with its job, from beside MXNet's loop.

The main thread is in that loop, and nothing on this side can wake it. Left to itself it waits for
ps-lite's barriers, which the scheduler must be alive for, and every other process as well. So a
thread that watches the lane ends the process, whoever is gone.
"""
from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import traceback
from contextlib import contextmanager, suppress
from typing import Callable, Iterator, Optional

from ..launch_reports import report
from ..notes import say
from ..protocol.end_signal import STATUS, was_told


@contextmanager
def ending_with_job(
    await_failure: Callable[[float], str],
    over: Callable[[], bool],
    finish: Callable[[], None],
    fail: Callable[[str], None],
    resending: float,
) -> Iterator[None]:
    """Ends the process while the block runs: with status 0 once the job is over, 1 once it failed;
    either way with that of a process that was told to end, if it was.

    Parameters
    ----------
    await_failure
        Called with seconds; returns a reason, or nothing when they are over.
    over
        Whether the job has ended in order.
    finish
        Ends what runs beside the loop, and await_failure's wait.
    fail
        Takes the reason where the block raises an exception, and has await_failure return it.
    resending
        Seconds after which the process ends once the job is over: its last words may have been
        lost, or others send again what it has to acknowledge.
    """
    done = threading.Event()
    may_end = _seconds_after(over, resending) if resending else over

    def watch() -> None:
        while not done.is_set():
            reason = await_failure(0.2)
            if done.is_set():
                return
            if may_end():
                finish()
                _end()
            if reason:
                report(failed=reason)
                say(reason)
                time.sleep(1.0)  # for the news to leave for the other processes
                _exit(1)

    watcher = threading.Thread(target=watch, daemon=True, name="end of job")
    watcher.start()
    try:
        yield
    except BaseException as error:  # sys.exit in a user's optimizer, for one
        with suppress(OSError, ValueError):
            traceback.print_exc()
        fail(f"{type(error).__name__}: {error}")
        watcher.join()  # which ends the process
    done.set()
    finish()
    watcher.join()


def _seconds_after(over: Callable[[], bool], seconds: float) -> Callable[[], bool]:
    """Whether it is so many seconds since over() has become true."""
    since: Optional[float] = None

    def is_later() -> bool:
        nonlocal since
        if since is None and over():
            since = time.monotonic()
        return since is not None and time.monotonic() - since > seconds

    return is_later


def _end() -> None:
    """Ends the process in order, but for the main thread."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # as `say` does
            stream.flush()
    _exit(0)


def _exit(status: int) -> None:
    os._exit(STATUS if was_told() else status)
