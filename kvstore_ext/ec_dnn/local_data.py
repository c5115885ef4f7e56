"""A worker's examples, and the order in which mini-batches take them."""
from __future__ import annotations

from typing import Any, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon

from ..errors import ArrayMismatch


class Examples:
    """Inputs with labels, by index.

    Parameters
    ----------
    data
        A pair (inputs, labels) of NumPy arrays or NDArrays, or a gluon.data.Dataset of such pairs.

    Raises
    ------
    ArrayMismatch
        For other things, as many labels as there are no inputs, or none at all.
    """

    def __init__(self, data: Any, what: str, context: mx.Context) -> None:
        self._context = context
        self._dataset = data if isinstance(data, gluon.data.Dataset) else None
        if self._dataset is None:
            if not isinstance(data, (tuple, list)) or len(data) != 2:
                raise ArrayMismatch(
                    f"{what} is a {type(data).__name__}; it must be a pair (inputs, labels) or a "
                    "gluon.data.Dataset of such pairs"
                )
            self._inputs, self._labels = map(_to_numpy, data)
            if len(self._inputs) != len(self._labels):
                raise ArrayMismatch(
                    f"{what} has {len(self._inputs)} inputs and {len(self._labels)} labels"
                )
        if len(self) == 0:
            raise ArrayMismatch(f"{what} has no examples; every worker needs one at least")

    def __len__(self) -> int:
        return len(self._labels if self._dataset is None else self._dataset)

    def batch(self, indices: np.ndarray) -> Tuple[mx.nd.NDArray, np.ndarray]:
        """Inputs on the device, float32 or as they are in a Dataset, and labels (n,), int64."""
        if self._dataset is None:
            inputs = to_device(self._inputs[indices], self._context)
            return inputs, self._labels[indices].astype(np.int64)
        pairs = [self._dataset[int(index)] for index in indices]
        inputs, labels = gluon.data.dataloader.default_batchify_fn(pairs)
        return inputs.as_in_context(self._context), labels.asnumpy().astype(np.int64)


class Order:
    """Mini-batches out of some examples: all once, in random order, before any comes again.

    Workers with few examples begin the next pass earlier; mini-batches are equally large.
    """

    def __init__(self, indices: np.ndarray, batch_size: int, random: np.random.RandomState) -> None:
        self._indices, self._batch_size, self._random = indices, batch_size, random
        self._left = indices[:0]

    @property
    def left(self) -> np.ndarray:
        """Those that have yet to come before any comes again, in their order."""
        return self._left

    def go_on(self, left: np.ndarray) -> None:
        """Begins with these."""
        self._left = left

    def take(self, batches: int) -> np.ndarray:
        """The indices of the next mini-batches, (batches, batch_size)."""
        needed = batches * self._batch_size
        parts, found = [self._left], len(self._left)
        while found < needed:
            parts.append(self._random.permutation(self._indices))
            found += len(self._indices)
        stream = np.concatenate(parts)
        self._left = stream[needed:]
        return stream[:needed].reshape(batches, self._batch_size)


def to_device(array: np.ndarray, context: mx.Context) -> mx.nd.NDArray:
    """An array as float32; on the CPU it may share memory with the one given."""
    return mx.nd.from_numpy(np.ascontiguousarray(array, np.float32)).as_in_context(context)


def _to_numpy(array: Any) -> np.ndarray:
    return array.asnumpy() if isinstance(array, mx.nd.NDArray) else np.asarray(array)
