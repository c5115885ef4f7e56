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
