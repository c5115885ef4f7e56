"""A lane without a cluster: worker and server in one process."""
from __future__ import annotations

from typing import Any, Callable

import mxnet as mx
from mxnet.base import _LIB, check_call
from mxnet.kvstore import KVStore

from . import _core
from .config import Options
from .errors import ClusterError
from .lane import make_worker, stock_store
from .optimizer import OptimizerLoop, SliceOptimizer, copy_optimizer
from .settings import multipliers
from .sparse import NativeUpdater, Servers
from .states import StateKeeper


class LocalLane:
    """Rank 0 of 1: worker and server in this process, joined through memory."""

    rank = 0
    workers = 1
    servers = Servers(count=1, big_array=1, flat=False)

    def __init__(self, name: str, options: Options) -> None:
        self.stock = stock_store("local")
        self.timeout = options.timeout
        ours, servers = _core.LocalTransport.make_pair()
        slim = _core.SlimServer(options.timeout)
        self._server = _core.Server(
            servers, workers=1, timeout=options.timeout, methods={"slim_dp": slim}
        )
        self.worker = make_worker(ours, name, options, rank=0, workers=1, servers=1)
        self._server.greet(0)
        self.worker.join()
        self._loop = OptimizerLoop(self._server)
        self._native = NativeUpdater(self._server.abort)
        self._states = StateKeeper(self._server, self._loop, self._native, slim)

    def open_store(self) -> int:
        """The store's number; a local lane has one."""
        return 0

    def set_optimizer(
        self, store: int, optimizer: mx.optimizer.Optimizer, sparse_only: bool
    ) -> None:
        """Updates with a copy of this optimizer, which hears of changes as a cluster's does."""
        # Sparse keys are updated in the script's own thread, so that they need no copy.
        self._native.set_optimizer(store, optimizer, multipliers(optimizer))
        self.set_updater(self._native)
        if sparse_only:
            return
        copied = SliceOptimizer(copy_optimizer(optimizer), multipliers(optimizer))
        self._loop.set_optimizer(store, copied)

    def set_updater(self, updater: Callable[[int, Any, Any], None]) -> None:
        """Has sparse keys updated by updater(number, gradient, value)."""
        KVStore._set_updater(self.stock, updater)

    def begin_sparse(self) -> None:
        """Nobody can be lost."""

    def sparse_settings(self, number: int, settings: str) -> None:
        """Sparse keys' optimizer is the script's own."""

    def call(self, call: Callable[[], Any], what: str) -> Any:
        """What the call returns; there is nobody to wait for."""
        return call()

    def barrier(self) -> None:
        """There is nobody to wait for."""

    def close(self) -> None:
        """Ends the lane once all operations have ended."""
        try:
            self.worker.leave()
        except RuntimeError as error:
            raise ClusterError(str(error)) from None
        finally:
            self._server.end_waits()
            self._states.join()
            self._loop.join()
            self.worker.stop()
            self._server.stop()
            check_call(_LIB.MXKVStoreFree(self.stock.handle))
