"""How a store gets a worker of the lane: in a cluster, or with a server in the same process."""
from __future__ import annotations

import contextlib
import ctypes
import json
import queue
import socket
import threading
import time
from typing import Any, Callable, Optional, Tuple

import mxnet as mx
from mxnet.base import _LIB, MXNetError, check_call
from mxnet.kvstore import KVStore

from . import _core
from .config import Job, Options
from .errors import ClusterError
from .optimizer import OptimizerLoop, multipliers, pack_optimizer

# What commands on the stock store's channel begin with. Only head 0 reaches a server's Python;
# there a stock server expects a pickled optimizer, and complains of our words in its log.
GREET = "kvstore_ext greet "
SET_OPTIMIZER = "kvstore_ext optimizer "
_CONTROLLER = 0
_MULTI_PRECISION = 1


def native_store(kind: str) -> Any:
    """A handle to a store of MXNet's own."""
    handle = ctypes.c_void_p()
    check_call(_LIB.MXKVStoreCreate(kind.encode(), ctypes.byref(handle)))
    return handle


class BoundedCalls:
    """Runs calls of MXNet's that may wait for ever, one at a time, and waits only so long.

    The thread that runs them starts now, because at exit, where the last call is made, Python
    starts none any more. A call that was given up stays behind in it, and later ones fail at once.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._calls: queue.SimpleQueue = queue.SimpleQueue()
        self._given_up = ""  # why
        threading.Thread(target=self._run, daemon=True, name="bounded calls").start()

    def __call__(
        self,
        call: Callable[[], Any],
        on_timeout: Callable[[], str],
        failure: Callable[[], str] = lambda: "",
    ) -> Any:
        """The call's result; raises what it raised, or ClusterError(on_timeout()) in the end.

        It is given up, too, as soon as failure() returns a reason.
        """
        latest = time.monotonic() + self._seconds
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


class LocalLane:
    """Rank 0 of 1: worker and server in this process, joined through memory."""

    rank = 0
    workers = 1

    def __init__(self, name: str, options: Options) -> None:
        self.native = native_store("local")
        ours, servers = _core.LocalTransport.make_pair()
        self._server = _core.Server(
            servers,
            workers=1,
            timeout=options.timeout,
        )
        self.worker = make_worker(ours, name, options, rank=0, servers=1)
        self._server.greet(0)
        self.worker.join()
        self._loop: Optional[OptimizerLoop] = None

    def set_optimizer(self, optimizer: mx.optimizer.Optimizer, native: KVStore) -> None:
        """Updates with this very optimizer, so that changes to it take effect, as stock's do."""
        native._set_updater(mx.optimizer.get_updater(optimizer))
        if self._loop is None:
            self._loop = OptimizerLoop(self._server)
        self._loop.set_optimizer(optimizer, multipliers(optimizer))

    def barrier(self) -> None:
        """There is nobody to wait for."""

    def close(self, native: KVStore) -> None:
        try:
            self.worker.leave()
        except RuntimeError as error:
            raise ClusterError(str(error)) from None
        finally:
            if self._loop is not None:
                self._loop.stop()
            self.worker.stop()
            self._server.stop()
            check_call(_LIB.MXKVStoreFree(native.handle))


class ClusterLane:
    """A worker of a launched job, beside MXNet's own dist_sync store."""

    def __init__(self, name: str, options: Options, job: Job) -> None:
        if job.role != "worker":
            raise ClusterError(
                f"a {name} store was created by a {job.role}; only workers have stores. Start "
                "servers and the scheduler with python -m kvstore_ext.server"
            )
        self._options = options
        self._job = job
        self._bounded = BoundedCalls(options.timeout)
        self.native = self._bounded(lambda: native_store("dist_sync"), self._cluster_incomplete)
        self.rank, self.workers = _rank_and_size(self.native)
        transport = _core.PsLiteTransport(
            role=_core.Role.WORKER, peers=job.servers, copies=job.resends
        )
        self.worker = make_worker(transport, name, options, self.rank, job.servers)
        self._greet()
        try:
            self.worker.join()
        except RuntimeError as error:
            self._let_go()
            raise ClusterError(str(error)) from None

    def _cluster_incomplete(self) -> str:
        job = self._job
        host, port = job.scheduler.rsplit(":", 1)
        limit = f"within {self._options.timeout:g} s"
        try:
            socket.create_connection((host, int(port)), timeout=2).close()
        except OSError as error:
            return f"the scheduler at {job.scheduler} cannot be reached {limit}: {error}"
        return (
            f"the scheduler at {job.scheduler} answers, but {limit} not all of {job.workers} "
            f"workers and {job.servers} servers have come to it: look for a worker or a server "
            "that did not start or cannot reach that address"
        )

    def _greet(self) -> None:
        """Finds out whether the servers have a lane before anything is sent to it."""
        self.command(GREET + str(self.rank))
        missing = self.worker.await_servers(min(10.0, self._options.timeout))
        if missing:
            # All workers find the same, so they can leave in order, which ends stock servers too.
            with contextlib.suppress(ClusterError):
                self._free()
            ranks = ", ".join(map(str, missing))
            raise ClusterError(
                f"server {ranks} of this job is not a P3Server: start servers with "
                "python -m kvstore_ext.server, or the job with tools/launch.py"
            )

    def command(self, body: str, head: int = _CONTROLLER) -> None:
        """Has all servers execute a command, on the stock store's channel."""
        self._bounded(
            lambda: check_call(
                _LIB.MXKVStoreSendCommmandToServers(self.native, head, body.encode())
            ),
            lambda: f"not all of {self._job.servers} servers have answered a command within "
            f"{self._options.timeout:g} s",
            self.worker.failure,
        )

    def set_optimizer(self, optimizer: mx.optimizer.Optimizer, native: KVStore) -> None:
        """Sends rank 0's optimizer to the servers; the other workers' push nothing before that."""
        if self.rank == 0:
            self.command(SET_OPTIMIZER + pack_optimizer(optimizer))
            if getattr(optimizer, "multi_precision", False):
                self.command("", _MULTI_PRECISION)

    def barrier(self) -> None:
        self._bounded(
            lambda: check_call(_LIB.MXKVStoreBarrier(self.native)),
            lambda: f"not all of {self.workers} workers have come to the barrier within "
            f"{self._options.timeout:g} s",
            self.worker.failure,
        )

    def close(self, native: KVStore) -> None:
        """Waits for the other workers, then ends ps-lite; after a failure it waits for nobody."""
        try:
            if self.worker.failure():
                raise RuntimeError(self.worker.failure())
            self.worker.leave()
        except RuntimeError as error:
            self._let_go()
            raise ClusterError(str(error)) from None
        self._free()

    def _let_go(self) -> None:
        """Ends ps-lite without the barriers in which the others might be missing."""
        check_call(_LIB.MXKVStoreSetBarrierBeforeExit(self.native, 0))
        try:
            self._free()
        except ClusterError:
            time.sleep(1.0)  # for the news to leave for the other processes

    def _free(self) -> None:
        # ps-lite must find the customer of every message that it still receives, so ours goes last.
        self.worker.hush()

        def free() -> None:
            # What failed and was never looked at is raised here once. Otherwise the store's
            # destructor would raise it, which ends the process.
            with contextlib.suppress(MXNetError):
                mx.nd.waitall()
            check_call(_LIB.MXKVStoreFree(self.native))

        self._bounded(
            free,
            lambda: f"the scheduler at {self._job.scheduler} has not let this worker go within "
            f"{self._options.timeout:g} s",
        )
        self.worker.stop()


def make_worker(
    transport: _core.Transport, name: str, options: Options, rank: int, servers: int
) -> _core.Worker:
    """A worker of the lane; its configuration is what all workers must have alike."""
    worker = _core.Worker(
        transport,
        rank=rank,
        servers=servers,
        slice_bytes=options.slice_bytes,
        window_bytes=options.window_bytes,
        timeout=options.timeout,
        deterministic=options.deterministic,
        configuration=json.dumps({"store": name, **options.shared()}),
    )
    worker.enable_trace(options.trace)
    return worker


def _rank_and_size(handle: Any) -> Tuple[int, int]:
    rank, size = ctypes.c_int(), ctypes.c_int()
    check_call(_LIB.MXKVStoreGetRank(handle, ctypes.byref(rank)))
    check_call(_LIB.MXKVStoreGetGroupSize(handle, ctypes.byref(size)))
    return rank.value, size.value
