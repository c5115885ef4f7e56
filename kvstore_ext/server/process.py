"""The process of a server or of the scheduler (python -m kvstore_ext.server)."""
from __future__ import annotations

import argparse
import ctypes
import os
import secrets
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import mxnet as mx
from mxnet.kvstore.kvstore_server import KVStoreServer

from .. import _core
from ..compression import option_names
from ..config import Job, Options, notice
from ..launch_reports import report
from ..notes import say
from ..optimizer.commands import OptimizerCommands
from ..protocol.commands import GREET, STOCK_SERVERS, Commands
from ..protocol.end_signal import TOLD, EndSignal, time_to_end, was_told
from ..protocol.scheduler_watch import SchedulerWatch
from ..security.admission import why_unreachable
from ..status_reports import keep_reporting
from ..stock_store import cluster_stands, native_store
from .ending import ending_with_job
from .entering import enter
from .parts import ServerParts
from .scheduler import not_all_have_come, run_scheduler

# Seconds in which workers, who know more, say that the job has not come to where it can end.
_LAST_WORDS = 3.0


class P3Server(KVStoreServer):
    """MXNet's server with the lane beside it: sparse keys go one way, dense ones the other.

    Parameters
    ----------
    kvstore
        The stock store of this process, not running yet.
    job, options
        What the launcher and KVSTORE_EXT_OPTIONS say.
    trusted_modules
        Modules of users' optimizers that may be loaded.
    """

    def __init__(
        self,
        kvstore: mx.kvstore.KVStore,
        job: Job,
        options: Options,
        trusted_modules: Tuple[str, ...] = (),
    ) -> None:
        super().__init__(kvstore)
        self._job = job
        self._timeout = options.timeout
        transport = _core.PsLiteTransport(
            role=_core.Role.SERVER, peers=job.workers, copies=job.resending > 0
        )
        # Without a name each server draws a number, and workers hear it with its greeting.
        number = job.number or secrets.randbits(28) or 1
        self._parts = ServerParts(
            transport, job.workers, options, number, job.name, options.shared_memory
        )
        self._lane = self._parts.core
        self._commands = Commands()
        self._commands.register(GREET, self._greet)
        optimizers = OptimizerCommands(
            self._parts.loop, self._parts.native, kvstore._set_updater, trusted_modules
        )
        optimizers.register(self._commands)
        # What the thread that watches for the end looks at.
        self._scheduler = SchedulerWatch(self._lane.scheduler(), job.scheduler, options.silence)
        self._greeted = threading.Event()
        self._latest = time.monotonic() + options.timeout
        self._told_since = 0.0
        self._told_limit = min(time_to_end() + _LAST_WORDS, 0.95 * notice())
        self._finished = threading.Event()
        self._for_ever = threading.Event()

    def run(self) -> None:
        """Serves until the workers are done; then the process ends, mostly from in here."""
        keep_reporting(self._status, self._finished)
        with ending_with_job(
            self._failure, self._lane.over, self._finish, self._fail, self._job.resending
        ):
            super().run()
        self._lane.stop()

    def _status(self) -> Dict[str, Any]:
        sent, received = self._lane.traffic()
        workers = [
            (pushes, round(late, 4), round(missing, 4))
            for pushes, late, missing in self._lane.progress()
        ]
        held = self._lane.held_bytes()
        return {"sent": sent, "received": received, "held": held, "workers": workers}

    def _failure(self, seconds: float) -> str:
        reason = self._lane.await_failure(seconds) or self._told_too_long()
        if reason:
            self._parts.tracing.end()
            return reason
        if self._greeted.is_set():
            self._scheduler.look(f"server {self.kvstore.rank}")
        elif time.monotonic() > self._latest:
            return self._never_greeted()
        return ""

    def _told_too_long(self) -> str:
        """Says to the workers that this process was told to end; a reason if they do not end."""
        if not was_told():
            return ""
        board = self._parts.end_board
        told = f"server {self.kvstore.rank}: {TOLD}"
        if not self._told_since:
            self._told_since = time.monotonic()
            say(told)
            board.told = board.told or told
        if board.ends:  # with snapshots, for which workers have a limit of their own
            return ""
        passed = time.monotonic() - self._told_since
        if self._greeted.is_set() and passed < self._told_limit:
            return ""
        self._lane.abort(told)
        return told

    def _never_greeted(self) -> str:
        if not cluster_stands(self.kvstore.handle):
            why = why_unreachable(self._job.scheduler, self._timeout)
            return why or not_all_have_come(self._job, self._timeout)
        reason = (
            f"server {self.kvstore.rank}: all have come to the scheduler, but within "
            f"{self._timeout:g} s no worker has opened its store"
        )
        self._lane.scheduler().abort(reason)
        return reason

    def _fail(self, reason: str) -> None:
        self._lane.abort(f"server {self.kvstore.rank}: {reason}")

    def _finish(self) -> None:
        self._finished.set()
        self._lane.end_waits()
        self._parts.join()

    def _controller(self) -> Callable[[int, bytes, Optional[ctypes.c_void_p]], None]:
        def control(_head: int, body: bytes, _: Optional[ctypes.c_void_p]) -> None:
            self._lane.set_rank(self.kvstore.rank)
            self._parts.tracing.rank = self._parts.loop.rank = self.kvstore.rank
            try:
                if not self._commands.execute(body.decode(errors="replace")):
                    self._refuse_stock_store()
            except (Exception, SystemExit) as error:
                self._fail(f"{type(error).__name__}: {error}")

        return control

    def _refuse_stock_store(self) -> None:
        """Ends the job, of which MXNet's own store hears nothing: it goes on once its command has
        returned, and its workers would train with servers that have no optimizer."""
        report(joined=True)  # the cluster stands, or it could not have come
        self._fail(
            "a worker has MXNet's own store, such as dist_sync: workers of this job open p3 (if "
            f"need be, with kvstore-launch --replace dist_sync=p3). {STOCK_SERVERS}"
        )
        self._for_ever.wait()  # until the thread that watches for the end ends the process

    def _greet(self, arguments: str) -> None:
        rank, host, job_name = [*arguments.split(" "), "", ""][:3]
        self._greeted.set()
        report(joined=True, rank=self.kvstore.rank)
        is_number = rank.isdecimal() and len(rank) < 9
        self._lane.greet(int(rank) if is_number else -1, host, job_name)


def main(arguments: Optional[List[str]] = None) -> None:
    """Runs the role that DMLC_ROLE names."""
    parser = argparse.ArgumentParser(
        prog="python -m kvstore_ext.server",
        description="A server or the scheduler of a kvstore_ext job, as DMLC_ROLE says.",
    )
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module of optimizers that workers may send; may be repeated",
    )
    parsed = parser.parse_args(arguments)
    job, options = enter(option_names())
    if job.role == "scheduler":
        run_scheduler(job, options)
        return
    sys.path.insert(0, os.getcwd())  # where a trusted module is most likely to be
    _core.use_one_heap()
    stock = mx.kvstore.KVStore(native_store("dist"))
    EndSignal.listen(lambda: None)  # the main thread is in MXNet's loop, and stays there
    P3Server(stock, job, options, tuple(parsed.trust)).run()
