"""What checks push, and what has to come of it.

Contributions are small whole numbers, so that sums are exact in any order.
"""
from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np
from mxnet.kvstore import KVStore

DEVICES = (mx.cpu(0), mx.cpu(1))


def contribution(rank: int, shape: tuple[int, ...], number: int = 1) -> np.ndarray:
    """What a worker pushes; numbers tell rounds, devices and keys apart."""
    random = np.random.RandomState(1000 * number + rank)
    return np.asarray(random.randint(-8, 9, shape), np.float32)


def ours(store: KVStore, shape: tuple[int, ...], number: int = 1, **how: Any) -> mx.nd.NDArray:
    return mx.nd.array(contribution(store.rank, shape, number), **how)


def total(store: KVStore, shape: tuple[int, ...], *numbers: int) -> np.ndarray:
    """The sum of what all workers push."""
    ranks = range(store.num_workers)
    return sum(contribution(rank, shape, number) for rank in ranks for number in numbers or (1,))


def assert_equal(array: mx.nd.NDArray, expected: Any) -> None:
    np.testing.assert_array_equal(array.asnumpy(), expected)


def pulled(store: KVStore, key: Any, shape: tuple[int, ...], **how: Any) -> mx.nd.NDArray:
    out = mx.nd.full(shape, 77, **how)
    store.pull(key, out=out)
    return out
