"""A lane without a cluster: worker and server in one process."""
from __future__ import annotations

import itertools
import socket
from typing import Any, Callable

import mxnet as mx
from mxnet.base import _LIB, check_call
from mxnet.kvstore import KVStore

from .. import _core
from ..config import Options
from ..errors import ClusterError, KVStoreError
from ..keys.sparse_rows import Servers
from ..optimizer.settings import multipliers
from ..optimizer.slice_optimizer import SliceOptimizer, copy_optimizer
from ..server.parts import ServerParts
from ..stock_store import stock_store
from .bounded_calls import LAST_MOMENT
from .lane import Lane, make_worker
from .told_alone import ToldAlone


class LocalLane(Lane):
    """Rank 0 of 1: worker and server in this process, joined through memory."""

    in_process = True
    rank = 0
    workers = 1
    servers = Servers(count=1, big_array=1, flat=False, most_bytes=2**63)

    _of_process = itertools.count()
    _sparse_hear = False  # the optimizer of sparse keys is a copy

    def __init__(self, name: str, options: Options) -> None:
        self.opened_before = next(self._of_process)
        self.stock = stock_store("local")
        self._take_over(options)
        ours, servers = _core.LocalTransport.make_pair()
        self._server = ServerParts(servers, workers=1, options=options)
        self.worker = make_worker(ours, name, options, rank=0, workers=1, servers=1)
        self._server.core.greet(0, socket.gethostname(), job_name="")
        self.worker.join()
        self.told_to_end = ToldAlone.of_process()
        try:
            self._trace_if_asked(options)
        except KVStoreError:
            self.close()
            raise

    def _of_trace(self) -> str:
        # A store is a job of its own here, and so is its trace.
        return f"-store-{self.opened_before}" if self.opened_before else ""

    def count_steps_of(self, store: Any) -> None:
        """Nobody watches a process that no launcher has started."""

    def open_store(self) -> int:
        """The store's number in this lane, which has one."""
        return 0

    def set_optimizer(
        self, store: int, optimizer: mx.optimizer.Optimizer, sparse_only: bool
    ) -> None:
        """Updates with a copy of this optimizer, which hears of changes as a cluster's does.

        Raises
        ------
        KVStoreError
            For one that has attributes which are no data.
        """
        settings = multipliers(optimizer)
        # Before anything changes.
        try:
            copied = copy_optimizer(optimizer)
        except Exception as error:
            raise KVStoreError(
                f"optimizer {type(optimizer).__name__} cannot be copied: {error}; leave that out"
            ) from None
        # Sparse keys are updated in the script's own thread, so that they need no copy; but where
        # the script's optimizer updates the dense ones, it counts for all.
        self._sparse_hear = sparse_only
        self._server.native.set_optimizer(store, copied if sparse_only else optimizer, settings)
        self.set_updater(self._server.native)
        if not sparse_only:
            self._server.loop.set_optimizer(store, SliceOptimizer(copied, settings))

    def set_updater(self, updater: Callable[[int, Any, Any], None]) -> None:
        """Has sparse keys updated by updater(number, gradient, value)."""
        KVStore._set_updater(self.stock, updater)

    def begin_sparse(self) -> None:
        """Nobody can be lost."""

    def sparse_settings(self, number: int, settings: str) -> None:
        """As a cluster's servers hear them, unless sparse keys' optimizer is the script's own."""
        if self._sparse_hear:
            self._server.native.apply(number, settings)

    def ask_servers(self, call: Callable[[], Any]) -> Any:
        """What the call returns; there is nobody to wait for."""
        return call()

    def call_together(self, call: Callable[[], Any], what: str) -> Any:
        """What the call returns; there is nobody to wait for."""
        return call()

    def barrier(self) -> None:
        """There is nobody to wait for."""

    def close(self) -> None:
        """Ends the lane once all operations have ended."""
        self.stop_trace(servers_too=False)
        if self.told_to_end is not None:
            self.told_to_end.stop(LAST_MOMENT)
        try:
            self._leave()
        except RuntimeError as error:
            raise ClusterError(str(error)) from None
        finally:
            self._server.core.end_waits()
            self._server.join()
            self.worker.stop()
            self._server.core.stop()
            check_call(_LIB.MXKVStoreFree(self.stock.handle))
