"""Stores that are open, how a script goes on after one has failed, and how a process ends."""
from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
import traceback
import weakref
from typing import Any, List

import mxnet as mx

from ..config import launch_rank, role_of_process
from ..errors import ClusterError, KVStoreError
from ..launch_reports import report
from ..notes import say
from ..protocol.end_signal import STATUS, TOLD, was_told
from ..snapshots.part import RefusedByRank0Error
from ..unwritten import write_out
from .exit_status import ExitStatus, uncaught
from .forks import prepare_for_forks

open_stores: weakref.WeakSet = weakref.WeakSet()
failures: List[KVStoreError] = []  # of opening and closing stores
left_behind: List[object] = []  # lanes that could not be ended, or are not a child's to end
_exit_status = ExitStatus()
_exiting = threading.Event()  # set once Python has called handlers at exit


def take_care_of(store: Any) -> None:
    """Has a store that is open now be closed with its process."""
    open_stores.add(store)
    _tell_launcher_of_errors()
    _prepare_for_forks()


@functools.lru_cache(maxsize=None)  # once a process
def _prepare_for_forks() -> None:
    prepare_for_forks(open_stores, failures, left_behind)


@functools.lru_cache(maxsize=None)  # once a process
def _tell_launcher_of_errors() -> None:
    """Has the launcher hear of an exception before it is printed, so that of many processes which
    fail for one reason it need only show the one that was the cause; and the other workers, once it
    is printed: a thread of the script may keep this process from coming to its end."""

    def report_first(print_error: Any, kind: Any, error: BaseException, trace: Any) -> None:
        for store in _left_open():
            _report(store, store._worker.failure() or f"worker {store.rank}: {_crash(error)}")
        print_error(kind, error, trace)
        if not hasattr(sys, "ps1") and not sys.flags.inspect:  # where the script ends with it
            for store in _left_open():
                if not store._worker.failure():
                    store.fail(_crash(error))

    sys.excepthook = functools.partial(report_first, sys.excepthook)
    threading.Thread(target=_tell_of_status, name="end of the script", daemon=True).start()


def _tell_of_status() -> None:
    """Has the other workers hear of a script that has ended by sys.exit, with a status, while a
    thread of its own lives: Python waits for that before it calls handlers at exit."""
    threading.main_thread().join()
    if _exiting.wait(1):
        return
    for store in _left_open():
        _fail(store, _how_it_ended(store))


def _left_open() -> List[Any]:
    return [store for store in list(open_stores) if not store.closed]


def tell_launcher_of(error: BaseException) -> None:
    """The same for a worker that has opened no store: its store's name or an option is wrong, say,
    and so is that of all others."""
    if role_of_process() == "worker" and not _tell_launcher_of_errors.cache_info().currsize:
        report(failed=f"worker {launch_rank()}: {_crash(error)}")


def _report(store: Any, reason: str) -> None:
    # As far as the job has come: the launcher looks whether another attempt comes further.
    # Where a script repeats steps, as it does behind --snapshot, nothing tells that.
    stores = [*_left_open(), store]
    if any(each.repeats for each in stores):
        report(failed=reason)
    else:
        report(failed=reason, step=max(each.steps for each in stores))


def _crash(error: BaseException) -> str:
    if isinstance(error, RefusedByRank0Error):
        return str(error)  # which is to blame, and not the script of this worker
    told: Any = traceback.TracebackException(type(error), error, None)
    told.__notes__ = None  # which Python 3.11 and later have behind the error's own line
    *_, text = told.format_exception_only()
    return f"its script failed: {text.strip()}"


def get_over_failures() -> None:
    """Closes stores that have failed, for a script which goes on without a cluster.

    MXNet keeps a failure with every array whose computation it has ended, a network's parameters
    perhaps, and raises it for whoever reads one of them. Who opens another store has heard of it.
    """
    failed = [store for store in open_stores if not store.closed and store._worker.failure()]
    if not failed and not failures:
        return
    for store in failed:
        with contextlib.suppress(KVStoreError):
            store.close()
    failures.clear()
    with contextlib.suppress(mx.MXNetError):
        mx.nd.waitall()


def _close_at_exit() -> None:
    """Leaves the job in order; a script that failed tells the others, lest they wait for it."""
    _exiting.set()
    status = _exit_status()
    crash = uncaught()
    for store in list(open_stores):
        if crash is None:
            close_alone(store)
        else:
            _close(store, _crash(crash))
    if failures or left_behind:
        # Threads of ps-lite may still wait for the missing, so the interpreter is not wound down.
        write_out()
        os._exit(STATUS if was_told() else status or (1 if failures else 0))


def close_alone(store: Any) -> None:
    """Closes a store that the script has not closed: at exit, or with its last reference, which may
    go before that where a script ends by sys.exit."""
    reason = _how_it_ended(store)
    if reason == TOLD:
        say(f"worker {store.rank}: {TOLD}")
    _close(store, reason)


def _how_it_ended(store: Any) -> str:
    """Why the job fails with a script that has ended without an exception; empty if it does not."""
    status = _exit_status.of_exit()
    told = store._lane.told_to_end
    if status == 0 or (told is not None and told.in_order):
        return ""
    return TOLD if was_told() else f"its script ended with status {status}"


def _fail(store: Any, reason: str) -> None:
    """Tells others of a reason, if there is one, unless the job has failed by another."""
    if reason and not store._worker.failure():
        # The launcher first: once the other workers know, they may end before this one.
        _report(store, f"worker {store.rank}: {reason}")
        store.fail(reason)


def _close(store: Any, crash: str) -> None:
    if store.closed:
        return
    _fail(store, crash)
    try:
        store.close()
    except SystemExit:  # of who was told to end meanwhile; a handler at exit cannot raise it
        failures.append(ClusterError(TOLD))
    except KVStoreError as error:
        failures.append(error)
        if not crash:
            say(str(error))


atexit.register(_close_at_exit)
