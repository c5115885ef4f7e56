"""A worker's trainer: gluon.Trainer with a KVStore, or Horovod's."""
from __future__ import annotations

import contextlib
import json
from typing import Any, ContextManager, Dict

import mxnet as mx


class StoreTrainer:
    """gluon.Trainer with any store of an arm.

    Parameters
    ----------
    how : dict
        What processes.py gives a worker.
    """

    def __init__(self, how: Dict[str, Any]) -> None:
        self._store = mx.kv.create(how["store"])
        self._compression = json.loads(how["compression"]) if how["compression"] else None
        self._updates = how["updates"]
        self.rank, self.workers = self._store.rank, self._store.num_workers
        # Slim-DP takes the mean of the workers' updates, the others the sum of their gradients.
        means = how["store"] == "slim_dp"
        self._batch = how["recipe"]["batch"] // (self.workers if means else 1)

    def begin(self, parameters: Any, optimizer: str, options: Dict[str, Any]) -> None:
        """What is to be trained, with MXNet's own names for how."""
        self._trainer = mx.gluon.Trainer(
            parameters, optimizer, options, kvstore=self._store,
            compression_params=self._compression, update_on_kvstore=self._updates,
        )

    def step(self) -> None:
        """Has gradients travel and parameters be updated; returns at once."""
        self._trainer.step(self._batch)

    def tested(self) -> ContextManager[None]:
        """While it is open, parameters are those of the model that all workers share."""
        if hasattr(self._store, "global_parameters"):
            return self._store.global_parameters()
        return contextlib.nullcontext()

    def meet(self) -> None:
        """Waits for all workers."""
        self._store._barrier()


class HorovodTrainer:
    """Horovod's DistributedTrainer, which averages over workers."""

    def __init__(self, how: Dict[str, Any]) -> None:
        import horovod.mxnet as hvd

        hvd.init()
        self._hvd: Any = hvd
        self.rank, self.workers = hvd.rank(), hvd.size()
        self._batch = how["recipe"]["batch"] // self.workers

    def begin(self, parameters: Any, optimizer: str, options: Dict[str, Any]) -> None:
        """As StoreTrainer's."""
        self._trainer = self._hvd.DistributedTrainer(parameters, optimizer, options)

    def step(self) -> None:
        """As StoreTrainer's."""
        self._trainer.step(self._batch)

    def tested(self) -> ContextManager[None]:
        """As StoreTrainer's."""
        return contextlib.nullcontext()

    def meet(self) -> None:
        """As StoreTrainer's."""
        self._hvd.allreduce(mx.nd.zeros(1), name="meeting").wait_to_read()


def make_trainer(how: Dict[str, Any]) -> Any:
    """That of a worker's arm."""
    return HorovodTrainer(how) if how["store"] == "horovod" else StoreTrainer(how)
