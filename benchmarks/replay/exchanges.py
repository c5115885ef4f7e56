"""How a worker's gradients become sums: a KVStore, or Horovod."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Optional

import mxnet as mx

from benchmarks.replay.waits import Update

LEARNING_RATE = 0.01


class NoTraining(mx.optimizer.Optimizer):
    """For a store that trains on the workers where communication alone is measured: weights stay
    as they are. How much travels depends on no value."""

    def create_state(self, index: Any, weight: mx.nd.NDArray) -> None:
        """There is none."""

    def update(
        self, index: Any, weight: mx.nd.NDArray, grad: mx.nd.NDArray, state: None
    ) -> None:
        """Does nothing."""


class StoreExchange:
    """Any KVStore, used as gluon.Trainer uses it.

    Parameters
    ----------
    name : str
        For `mx.kv.create`.
    compression : str
        Compression parameters as JSON, or nothing.
    updates : bool
        The store updates weights, as Trainer's `update_on_kvstore`.
    apart : bool
        Push and pull in two calls, as Module does: MXNet's own compression knows no pushpull.
    momentum : float
        Of the store's optimizer.
    trains : bool
        Workers update weights.
    """

    def __init__(
        self,
        name: str,
        compression: str,
        updates: bool,
        apart: bool,
        momentum: float = 0.0,
        trains: bool = True,
    ) -> None:
        self._store = mx.kv.create(name)
        self._updates, self._apart, self._trains = updates, apart, trains
        self._update = Update()
        self._weights: Dict[int, mx.nd.NDArray] = {}
        if compression:
            self._store.set_gradient_compression(json.loads(compression))
        if updates:
            on_workers = name == "slim_dp"
            self._store.set_optimizer(
                NoTraining()
                if on_workers and not trains
                else mx.optimizer.SGD(learning_rate=LEARNING_RATE, momentum=momentum)
            )
        self.rank = self._store.rank

    def begin(self, key: int, weight: mx.nd.NDArray) -> None:
        """Gives all workers the first one's weight."""
        self._weights[key] = weight
        if self._apart:
            self._store.init(key, weight)
        else:
            self._store.broadcast(key, weight, out=weight)

    def step(
        self,
        key: int,
        weight: mx.nd.NDArray,
        gradient: mx.nd.NDArray,
        total: Optional[mx.nd.NDArray] = None,
    ) -> None:
        """Updates a weight by the sum of all workers' gradients; returns at once.

        The sum takes the gradient's place, as with Trainer, unless there is an array for it. Where
        nothing is trained it takes the weight's.
        """
        total = gradient if total is None else total
        out = weight if self._updates or not self._trains else total
        if self._apart:
            self._store.push(key, gradient, priority=-key)
            self._store.pull(key, out=out, priority=-key)
        else:
            self._store.pushpull(key, gradient, out=out, priority=-key)
        if self._trains and not self._updates:
            self._update.push([total], [weight])

    def barrier(self) -> None:
        """Waits until all workers have come to it."""
        self._store._barrier()

    def begin_snapshots(self) -> None:
        """Has ours take weights that are at hand, as with Trainer."""
        from kvstore_ext.snapshots import Part

        part = Part()
        part.name, part.at_hand = "weights", lambda: self._weights
        self._store.include_in_snapshots(part)

    def snapshot(self, directory: Path, every: int) -> None:
        """Takes one, if it is due."""
        self._store.snapshot(directory, every)


class HorovodExchange:
    """Horovod, used as its DistributedTrainer uses it: it sums gradients in their place."""

    def __init__(self) -> None:
        import horovod.mxnet as hvd

        hvd.init()
        self._hvd: Any = hvd
        self._update = Update()
        self.rank = hvd.rank()

    def begin(self, key: int, weight: mx.nd.NDArray) -> None:
        """Gives all workers the first one's weight."""
        self._hvd.broadcast_(weight, root_rank=0, name=str(key))

    def step(
        self,
        key: int,
        weight: mx.nd.NDArray,
        gradient: mx.nd.NDArray,
        _total: Optional[mx.nd.NDArray] = None,
    ) -> None:
        """Updates a weight by the sum of all workers' gradients; returns at once."""
        self._hvd.allreduce_(gradient, average=False, name=str(key), priority=-key)
        self._update.push([gradient], [weight])
