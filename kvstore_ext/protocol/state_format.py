"""An optimizer's state on its way between worker and server: an outline, as json, and bytes.

A state is an array of the parameter's shape, nothing, a number, or a tuple or list of such.
"""
from __future__ import annotations

import math
from typing import Any, List, Tuple

import mxnet as mx
import numpy as np

from ..errors import KVStoreError

# The outline of a state, as json carries it: null, ["number", 3], ["array", "float32", [2, 3]],
# ["rows", "float32", [2, 3]] for a row-sparse array, ["tuple", [outline, ...]] or ["list", ...].
Outline = Any

_KINDS = {"default": "array", "row_sparse": "rows"}


def flatten(state: Any) -> Tuple[Outline, List[np.ndarray]]:
    """A state's outline and its arrays, in the order in which they stand in it."""
    if state is None:
        return None, []
    if isinstance(state, (bool, int, float)):
        return ["number", state], []
    if isinstance(state, (tuple, list)):
        parts = [flatten(part) for part in state]
        arrays = [array for _, own in parts for array in own]
        return ["tuple" if isinstance(state, tuple) else "list", [o for o, _ in parts]], arrays
    if isinstance(state, mx.nd.NDArray) and state.stype in _KINDS:
        array = state.asnumpy()
        return [_KINDS[state.stype], array.dtype.name, list(array.shape)], [array]
    raise KVStoreError(
        f"an optimizer state holds a {type(state).__name__}; it may hold NDArrays, numbers, None, "
        "tuples and lists"
    )


def build(outline: Outline, arrays: List[np.ndarray]) -> Any:
    """The state of this outline; takes its arrays from the list's front."""
    if outline is None:
        return None
    kind, content = outline[0], outline[1]
    if kind == "number":
        return content
    if kind in _KINDS.values():
        array = arrays.pop(0)
        dense = mx.nd.array(array, dtype=array.dtype)
        return dense if kind == "array" else with_all_rows(dense)
    parts = [build(part, arrays) for part in content]
    return tuple(parts) if kind == "tuple" else parts


def arrays_from(outline: Outline, data: bytes) -> List[np.ndarray]:
    """The arrays of an outline, out of their bytes one after the other."""
    arrays, offset = [], 0
    for dtype, shape in _leaves(outline):
        count = math.prod(shape)
        array = np.frombuffer(data, dtype, count, offset).reshape(shape)
        arrays.append(array)
        offset += array.nbytes
    return arrays


def _leaves(outline: Outline) -> List[Tuple[str, List[int]]]:
    if outline is None or outline[0] == "number":
        return []
    if outline[0] in _KINDS.values():
        return [(outline[1], outline[2])]
    return [leaf for part in outline[1] for leaf in _leaves(part)]


def with_all_rows(dense: mx.nd.NDArray) -> mx.nd.NDArray:
    """A row-sparse array that holds rows of zeros too, which MXNet's own conversion leaves out."""
    rows = mx.nd.arange(dense.shape[0], dtype="int64")
    return mx.nd.sparse.row_sparse_array((dense, rows), shape=dense.shape, dtype=dense.dtype)
