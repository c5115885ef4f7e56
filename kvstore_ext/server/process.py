"""The process of a server or of the scheduler (python -m kvstore_ext.server)."""
from __future__ import annotations

import argparse
import ctypes
import os
import sys
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional, Tuple

import mxnet as mx
from mxnet.base import _LIB, check_call
from mxnet.kvstore.kvstore_server import KVStoreServer

from .. import _core
from ..compression import option_names
from ..config import Job, Options
from ..errors import ClusterError, OptionError
from ..launch_reports import report
from ..optimizer.commands import OptimizerCommands
from ..protocol.commands import GREET, Commands
from ..stock_store import native_store
from .parts import ServerParts


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
            role=_core.Role.SERVER, peers=job.workers, copies=job.resends
        )
        self._parts = ServerParts(transport, job.workers, options.timeout)
        self._lane = self._parts.core
        self._commands = Commands()
        self._commands.register(GREET, self._greet)
        optimizers = OptimizerCommands(
            self._parts.loop, self._parts.native, kvstore._set_updater, trusted_modules
        )
        optimizers.register(self._commands)
        # What the thread that watches for failures looks at.
        self._greeted = threading.Event()
        self._latest = time.monotonic() + options.timeout

    def run(self) -> None:
        """Serves until the workers are done. A job that fails ends the process with status 1."""
        with ending_on_failure(self._failure, self._lane.end_waits):
            super().run()
        self._parts.join()
        self._lane.stop()

    def _failure(self, seconds: float) -> str:
        reason = self._lane.await_failure(seconds)
        if not reason and not self._greeted.is_set() and time.monotonic() > self._latest:
            return _incomplete(self._job, self._timeout)
        return reason

    def _controller(self) -> Callable[[int, bytes, Optional[ctypes.c_void_p]], None]:
        def control(_head: int, body: bytes, _: Optional[ctypes.c_void_p]) -> None:
            self._lane.set_rank(self.kvstore.rank)
            try:
                self._execute(body.decode())
            except Exception as error:
                self._lane.abort(f"server {self.kvstore.rank}: {type(error).__name__}: {error}")

        return control

    def _execute(self, command: str) -> None:
        if not self._commands.execute(command):
            # MXNet's own store sends a pickled optimizer. This server would go on without it.
            raise ClusterError(
                f"a worker sent the command {command[:20]!r}, as MXNet's own store does: workers "
                "of this job open p3 (if need be, with kvstore-launch --replace dist_sync=p3). "
                "For MXNet's store start servers with --server-command \"python -c 'import mxnet'\""
            )

    def _greet(self, rank: str) -> None:
        self._greeted.set()
        report(joined=True)
        self._lane.greet(int(rank))


def run_scheduler(job: Job, options: Options) -> None:
    """Serves as the job's scheduler, which is MXNet's own, until all have left."""
    stock = native_store("dist")
    listener = _core.Listener(
        _core.PsLiteTransport(role=_core.Role.SCHEDULER, peers=job.workers, copies=job.resends)
    )
    no_commands = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(
        lambda *_: None
    )
    latest = time.monotonic() + options.timeout
    stands = False

    def failure(seconds: float) -> str:
        nonlocal stands
        reason = listener.await_failure(seconds)
        if reason or stands or time.monotonic() < latest:
            return reason
        stands = _all_have_come(stock)
        return "" if stands else _incomplete(job, options.timeout)

    with ending_on_failure(failure, listener.end_waits):
        check_call(_LIB.MXKVStoreRunServer(stock, no_commands, None))
    listener.stop()


def _all_have_come(stock: Any) -> bool:
    """Whether the cluster of a scheduler stands."""
    # The number of nodes that were silent for longer than -1 s is that of all nodes, or 0 before.
    nodes = ctypes.c_int()
    workers_and_servers, seconds = 6, -1
    check_call(
        _LIB.MXKVStoreGetNumDeadNode(stock, workers_and_servers, ctypes.byref(nodes), seconds)
    )
    return nodes.value > 0


def _incomplete(job: Job, timeout: float) -> str:
    return (
        f"within {timeout:g} s not all of {job.workers} workers and {job.servers} servers have "
        f"come to the scheduler at {job.scheduler}"
    )


@contextmanager
def ending_on_failure(
    await_failure: Callable[[float], str], end_waits: Callable[[], None]
) -> Iterator[None]:
    """Ends the process with status 1 once await_failure(seconds) returns a reason.

    It is asked until the end, when end_waits() has it return at once.
    The thread in MXNet's server loop waits for the workers, and nothing else can wake it.
    """
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            reason = await_failure(0.2)
            if reason:
                report(failed=reason)
                print(f"kvstore_ext: {reason}", file=sys.stderr, flush=True)
                time.sleep(1.0)  # for the news to leave for the other processes
                os._exit(1)

    watcher = threading.Thread(target=watch, daemon=True, name="end on failure")
    watcher.start()
    yield
    done.set()
    end_waits()
    watcher.join()


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
    try:
        job = Job.from_environment()
        options = Options.from_environment(option_names())
    except OptionError as error:
        sys.exit(f"kvstore_ext.server: {error}")
    if job is None or job.role == "worker":
        found = "not set" if job is None else "worker"
        sys.exit(f"kvstore_ext.server: DMLC_ROLE is {found}; it must be server or scheduler")
    report(joining=True)
    if job.role == "scheduler":
        run_scheduler(job, options)
        return
    sys.path.insert(0, os.getcwd())  # where a trusted module is most likely to be
    _core.use_one_heap()
    stock = mx.kvstore.KVStore(native_store("dist"))
    P3Server(stock, job, options, tuple(parsed.trust)).run()
