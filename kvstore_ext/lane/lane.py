"""What a store asks of its lane: in a cluster (cluster_lane.py), or in one process (local_lane.py).
"""
from __future__ import annotations

import json
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, Callable, Optional

import mxnet as mx

from .. import _core
from ..config import Options, trace_asked_for
from ..errors import KVStoreError, of_job
from ..keys.sparse_rows import Servers
from ..trace.steps import Steps
from .end_of_script import EndOfScript
from .threads_left import threads_left
from .tracer import Tracer


class Lane(ABC):
    """A process's way to the servers. Called by the thread that calls the store; the worker by any.

    worker
        Its worker of the lane, with which dense keys travel.
    stock
        MXNet's own store, with which sparse ones do.
    servers
        How that deals rows to its servers.
    in_process
        Whether its server is in this process, without a cluster.
    rank, workers
        The worker's rank, and how many there are.
    timeout
        Seconds for what gives no signs of life.
    patience
        Seconds that anything may wait for a living process: `Options.longest_wait`.
    non_finite
        What becomes of gradients that are not finite, of keys that travel uncompressed.
    verify_every
        Steps after which workers' parameters are compared; 0 for never.
    opened_before
        How many stores of other lanes this process had opened before this lane's first one.
    told_to_end
        What is done where a process of the job is told to end; None until the job stands.
    stuck
        Whether ps-lite could not be ended, so that the interpreter cannot be wound down either.
    """

    worker: _core.Worker
    stock: Any
    servers: Servers
    in_process: bool
    rank: int
    workers: int
    timeout: float
    patience: float
    non_finite: _core.NonFinite
    verify_every: int
    opened_before = 0
    told_to_end: Optional[EndOfScript] = None
    stuck = False

    _tracer: Optional[Tracer] = None

    def forget_stores(self) -> None:
        """In a forked child, where its stores are closed: the trace is the parent's, too."""
        self.worker.recorder().forget()

    def start_trace(self, directory: str, steps: Steps, options: Options) -> None:
        """Records what this worker does, and has the servers do so if it is rank 0.

        Raises
        ------
        KVStoreError
            Where that is done already, or files cannot be written, here or at a server.
        """
        if self._tracer is not None:
            raise KVStoreError("this process is traced already; stop_trace() ends that")
        self._tracer = Tracer(self.worker, self.rank, self.servers.count, options)
        try:
            self._tracer.begin(directory, steps)
        except KVStoreError:
            self.stop_trace()
            raise

    def stop_trace(self, servers_too: bool = True) -> None:
        """Ends what start_trace began, if anything; without servers_too they go on until the job
        ends."""
        tracer, self._tracer = self._tracer, None
        if tracer is not None:
            tracer.end(servers_too)

    def _take_over(self, options: Options) -> None:
        self.timeout = options.timeout
        self.patience = options.longest_wait
        self.verify_every = options.verify_every
        self.non_finite = _core.NonFinite.__members__[options.non_finite.upper()]

    def _trace_if_asked(self, options: Options) -> None:
        asked = trace_asked_for()
        if asked is not None:
            directory, steps = asked
            self.start_trace(directory + self._of_trace(), steps, options)

    def _of_trace(self) -> str:
        """What the name of a trace's directory has beside what was asked for."""
        return ""

    @abstractmethod
    def count_steps_of(self, store: Any) -> None:
        """Tells the launcher how many steps the store has behind it, where there is a launcher."""

    @abstractmethod
    def open_store(self) -> int:
        """The number of one more store: how many the lane has opened before."""

    @abstractmethod
    def set_optimizer(
        self, store: int, optimizer: mx.optimizer.Optimizer, sparse_only: bool
    ) -> None:
        """Updates a store's keys with this optimizer, rank 0's, on the servers; none is updated
        before it has come."""

    @abstractmethod
    def set_updater(self, updater: Callable[[int, Any, Any], None]) -> None:
        """Has sparse keys updated by updater(number, gradient, value), in this process."""

    @abstractmethod
    def begin_sparse(self) -> None:
        """To be called before the first sparse key."""

    def wait_for_all(self) -> None:
        """Waits for all operations of MXNet's; raises ClusterError where the job has failed, and
        MXNetError where an operation has for another reason."""
        with of_job(self.worker.failure):
            mx.nd.waitall()

    def _leave(self) -> None:
        """Waits until all workers leave the job; raises RuntimeError where it fails."""
        while not self.worker.leave(0.2):
            pass  # for Python to hear Ctrl-C

    @abstractmethod
    def sparse_settings(self, number: int, settings: str) -> None:
        """Has the servers update a sparse key with these settings from now on."""

    @abstractmethod
    def ask_servers(self, call: Callable[[], Any]) -> Any:
        """What a call returns that waits for all servers; raises ClusterError where the job fails,
        as it does where they are dead, or after `patience`."""

    @abstractmethod
    def call_together(self, call: Callable[[], Any], what: str) -> Any:
        """What a call returns that waits for all workers; raises ClusterError where the others do
        not do likewise: `what`, in words that go behind "has"."""

    @abstractmethod
    def barrier(self) -> None:
        """Waits for all workers; raises ClusterError after `patience`, or where the job fails."""

    @abstractmethod
    def close(self) -> None:
        """Closes a store; the last one ends the lane. Raises ClusterError where the job failed."""


def make_worker(
    transport: _core.Transport,
    name: str,
    options: Options,
    rank: int,
    workers: int,
    servers: int,
    job: int = 0,
) -> _core.Worker:
    """A worker of the lane; its configuration is what all workers must have alike, `job` the number
    that a launcher has given the job, or 0."""
    _make_room_for_failures()
    return _core.Worker(
        transport,
        rank=rank,
        workers=workers,
        servers=servers,
        slice_bytes=options.slice_bytes,
        window_bytes=options.window_bytes,
        timeout=options.timeout,
        silence=options.silence,
        patience=options.longest_wait,
        deterministic=options.deterministic,
        priorities=options.priorities,
        checksum=options.checksum,
        shared_memory=options.shared_memory,
        encode_threads=options.encode_threads or threads_left(),
        job=job,
        configuration=json.dumps({"store": name, **options.shared()}),
    )


@lru_cache(maxsize=None)
def _make_room_for_failures() -> None:
    # Once: all stores of a process share MXNet's engine.
    array = mx.nd.empty((1,), mx.cpu())
    _core.make_room_for_failures(array.handle.value)
