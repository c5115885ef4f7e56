"""Snapshots of scripts that know nothing of them: kvstore-ext --snapshot DIR train.py."""
from __future__ import annotations

import sys
import weakref
from pathlib import Path
from typing import Any, Callable

import mxnet as mx

from ..store.p3_worker import P3Worker


class AutomaticSnapshots:
    """Takes snapshots after steps of Trainers and Modules, and goes on from them.

    A script that is started again begins at its first batch. Until it is where the snapshot was
    taken its steps do nothing: nothing is sent, and the network stays as it is. Then the run goes
    on, with the data, the epochs and the schedules that the script has come to.

    Parameters
    ----------
    directory
        That of a process's first store; a further one has its own in there.
    every
        Steps from one to the next.
    """

    def __init__(self, directory: str, every: int) -> None:
        self._directory = Path(directory)
        self._every = every
        # Steps of a store that were made in an earlier job, and that the script has yet to repeat.
        self._to_repeat: Any = weakref.WeakKeyDictionary()

    def begin(self) -> None:
        """Has them taken in this process from now on."""
        mx.gluon.Trainer.step = self._after_steps(mx.gluon.Trainer.step, _store_of_trainer)
        mx.mod.Module.update = self._after_steps(
            mx.mod.Module.update, lambda module: module._kvstore
        )

    def _after_steps(
        self, step: Callable[..., None], store_of: Callable[[Any], Any]
    ) -> Callable[..., None]:
        def step_and_snapshot(owner: Any, *arguments: Any, **named: Any) -> None:
            store = store_of(owner)
            if not isinstance(store, P3Worker):
                step(owner, *arguments, **named)
            elif not self._repeats(store):
                step(owner, *arguments, **named)
                store.snapshot(self._directory_of(store), self._every)

        return step_and_snapshot

    def _repeats(self, store: P3Worker) -> bool:
        """Whether this step was made in an earlier job."""
        if store not in self._to_repeat:
            self._to_repeat[store] = self._restored(store)
        left = self._to_repeat[store]
        if left == 0:
            return False
        self._to_repeat[store] = left - 1
        if left == 1:
            # Forward passes have drawn random numbers meanwhile, and changed running averages.
            store.restore(self._directory_of(store))
        return True

    def _restored(self, store: P3Worker) -> int:
        directory = self._directory_of(store)
        step = store.restore(directory)
        if step is not None and store.rank == 0:
            print(
                f"kvstore_ext: goes on from step {step}, of a snapshot in {directory}; until the "
                "script has come there it trains nothing",
                file=sys.stderr,
                flush=True,
            )
        return step or 0

    def _directory_of(self, store: P3Worker) -> Path:
        return self._directory / f"store-{store.number}" if store.number else self._directory


def _store_of_trainer(trainer: mx.gluon.Trainer) -> Any:
    if not trainer._kv_initialized:
        trainer._init_kvstore()
    return trainer._kvstore
