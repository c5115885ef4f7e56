"""Jobs that train with Slim-DP, on parameters that need no network, and what they train."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mxnet as mx
import numpy as np

SHAPES = [(40, 25), (25,), (7, 3, 5), (1,), (900,)]


@dataclass(frozen=True)
class Case:
    """One store."""

    options: dict[str, Any] = field(default_factory=dict)
    devices: int = 1
    steps: int = 40
    device: str = "cpu"  # of pinned memory, the lane copies as of a GPU


def initial(key: int) -> np.ndarray:
    """A key's first value; a part of it is 0, as biases are."""
    random = np.random.RandomState([7, key])
    values = random.standard_normal(SHAPES[key]) * (random.uniform(size=SHAPES[key]) > 0.3)
    return values.astype(np.float32)


def gradient(case: Case, rank: int, key: int, step: int, value: np.ndarray) -> np.ndarray:
    """Of a worker's own loss in a step, float32: a parabola about a place that it draws."""
    place = np.random.RandomState([rank, key, step]).standard_normal(SHAPES[key])
    return (value - place.astype(np.float32)) * np.float32(0.5)


def make_optimizer() -> mx.optimizer.Optimizer:
    """With a state, which stays with the worker."""
    return mx.optimizer.SGD(learning_rate=0.25, momentum=0.5)


def open_store(**options: Any) -> mx.kvstore.KVStore:
    """A store that trains with Slim-DP, a round every second step and a core every third round."""
    store = mx.kv.create("p3")
    few = {"alpha": 0.4, "beta": 0.2, "p": 2, "q": 3}
    store.set_gradient_compression({"type": "slim_dp", **few, **options})
    return store


class Bare:
    """A script that updates by pushpull."""

    def __init__(self, store: mx.kvstore.KVStore) -> None:
        self.store = store
        store.set_optimizer(make_optimizer())
        self.parameters = [mx.nd.array(initial(key)) for key in range(len(SHAPES))]
        for key, array in enumerate(self.parameters):
            store.broadcast(key, array, out=array)

    def train(self, first: int, last: int) -> None:
        """The steps from the first to the one before the last."""
        for step in range(first, last):
            for key, array in enumerate(self.parameters):
                change = gradient(Case(), self.store.rank, key, step, array.asnumpy())
                self.store.pushpull(key, mx.nd.array(change), out=array)

    def values(self) -> dict[str, np.ndarray]:
        """The worker's parameters, by their keys."""
        return {str(key): array.asnumpy() for key, array in enumerate(self.parameters)}
