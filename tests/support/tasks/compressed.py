"""Jobs that push compressed gradients, and what the reference makes of the same gradients."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

SHAPES = [(1,), (7,), (300, 5), (20, 3, 11), (0,), (70_000,)]


@dataclass(frozen=True)
class Case:
    """One store that compresses."""

    type: str
    options: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    devices: int = 1
    rounds: int = 4
    momentum: float = 0.0
    by_name: bool = False  # mx.kv.create(type), its options from the environment
    device: str = "cpu"  # of pinned memory, the lane copies as of a GPU
    shapes: Any = tuple(SHAPES)


def gradient(case: Case, rank: int, key: int, round: int, device: int = 0) -> np.ndarray:
    """What a worker pushes for a key in a round, from 1 on, from one of its devices."""
    random = np.random.RandomState([rank, key, round, device])
    values = random.standard_normal(tuple(case.shapes[key])) * (1 + rank) / 100
    return values.astype(case.dtype)


def gradient_of_worker(case: Case, rank: int, key: int, round: int) -> np.ndarray:
    """The sum over its devices, flat, as the lane sees it: float32."""
    parts = [gradient(case, rank, key, round, device) for device in range(case.devices)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total.astype(np.float32).reshape(-1)
