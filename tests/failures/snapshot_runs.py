"""Runs of a store with one key, with snapshots, for tests of these."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np

SHAPE = (3, 50)


def open_store(shape: tuple[int, ...] = SHAPE, optimizer: str = "adam", **compression: Any) -> Any:
    """A store with one key, whose value is 0."""
    store = mx.kv.create("p3")
    if compression:
        store.set_gradient_compression(compression)
    store.set_optimizer(mx.optimizer.create(optimizer, learning_rate=0.1))
    store.init("weight", mx.nd.zeros(shape))
    return store


def value(store: Any) -> np.ndarray:
    out = mx.nd.empty(SHAPE)
    store.pull("weight", out=out)
    return out.asnumpy()


def train(directory: Path, steps: int, every: int = 1, keep: int = 9) -> list[np.ndarray]:
    """Makes steps with snapshots, and returns the values after each."""
    store = open_store()
    values = [value(store)]
    for step in range(1, steps + 1):
        store.push("weight", mx.nd.full(SHAPE, step))
        values.append(value(store))
        assert store.snapshot(directory, every=every, keep=keep) == (step % every == 0)
    store.close()
    return values


def restored(directory: Path, **how: Any) -> tuple[int | None, np.ndarray]:
    """The step that a new store goes on from, and its value then."""
    store = open_store(**how)
    step = store.restore(directory)
    found = value(store)
    store.close()
    return step, found


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())
