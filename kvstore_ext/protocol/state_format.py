"""An optimizer's state on its way between worker and server: an outline, as json, and bytes.

A state is an array of the parameter's shape, nothing, a number, or a tuple or list of such. Its
bytes are those of its arrays one after the other; state_pieces.py sends them piece by piece.
"""
from __future__ import annotations

import math
from typing import Any, Iterator, List, Tuple

import mxnet as mx
import numpy as np

from ..errors import KVStoreError

# The outline of a state, as json carries it: null, ["number", 3], ["array", "float32", [2, 3]],
# ["rows", "float32", [2, 3]] for a row-sparse array, ["tuple", [outline, ...]] or ["list", ...].
Outline = Any

_KINDS = {"default": "array", "row_sparse": "rows"}


def flatten(state: Any) -> Tuple[Outline, List[mx.nd.NDArray]]:
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
        return [_KINDS[state.stype], np.dtype(state.dtype).name, list(state.shape)], [state]
    raise KVStoreError(
        f"an optimizer state holds a {type(state).__name__}; it may hold NDArrays, numbers, None, "
        "tuples and lists"
    )


def build(outline: Outline, arrays: List[np.ndarray]) -> Any:
    """The state of this outline; takes its arrays from the list's front, so that no more than one
    of them is there twice."""
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


def leaves(outline: Outline) -> List[Tuple[str, Tuple[int, ...]]]:
    """Type and shape of each array."""
    if outline is None or outline[0] == "number":
        return []
    if outline[0] in _KINDS.values():
        return [(outline[1], tuple(outline[2]))]
    return [leaf for part in outline[1] for leaf in leaves(part)]


def with_shapes(outline: Outline, shapes: Iterator[Tuple[int, ...]]) -> Outline:
    """The outline of the same state with arrays of other shapes, in their order."""
    if outline is None or outline[0] == "number":
        return outline
    if outline[0] in _KINDS.values():
        return [outline[0], outline[1], list(next(shapes))]
    return [outline[0], [with_shapes(part, shapes) for part in outline[1]]]


def elements(array: Any, begin: int, end: int) -> np.ndarray:
    """Some of an array's elements, without a copy of all others; 0 where a row-sparse one has no
    row."""
    if getattr(array, "stype", "default") == "default":
        some = array.reshape(-1)[begin:end]
        return some.asnumpy() if isinstance(some, mx.nd.NDArray) else some
    width = math.prod(array.shape[1:])
    first, last = begin // width, -(-end // width)
    rows = mx.nd.sparse.retain(array, mx.nd.arange(first, last, dtype="int64"))
    found = np.zeros((last - first, width), array.dtype)
    found[rows.indices.asnumpy() - first] = rows.data.asnumpy().reshape(-1, width)
    return found.reshape(-1)[begin - first * width : end - first * width]


def with_all_rows(dense: mx.nd.NDArray) -> mx.nd.NDArray:
    """A row-sparse array that holds rows of zeros too, which MXNet's own conversion leaves out."""
    rows = mx.nd.arange(dense.shape[0], dtype="int64")
    return mx.nd.sparse.row_sparse_array((dense, rows), shape=dense.shape, dtype=dense.dtype)
