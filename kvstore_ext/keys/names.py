"""What a script calls its keys, and the forms in which it hands them over with their arrays."""
from __future__ import annotations

import ctypes
import hashlib
from typing import Any, Collection, Dict, Iterable, List, Sequence, Tuple, Union

import mxnet as mx

from ..errors import ArrayMismatch, KVStoreError

Key = Union[int, str]
Arrays = Union[mx.nd.NDArray, Sequence[Any]]
Pairs = List[Tuple[Key, List[mx.nd.NDArray]]]


def pairs(key: Union[Key, Sequence[Key]], value: Arrays) -> Pairs:
    """A list of keys, each with its arrays, one for each device, from what a script may pass: one
    key or several, with an array or a list of arrays for each. A key that stands twice in a list
    gets the arrays of both.

    Raises
    ------
    KVStoreError
        For a key that is no int or str, or another number of values than of keys.
    ArrayMismatch
        For a value that is no NDArray.
    """
    if isinstance(key, (int, str)) and not isinstance(key, bool):
        if isinstance(value, mx.nd.NDArray):
            return [(key, [classic(value)])]
        if not isinstance(value, Iterable):
            raise ArrayMismatch(f"key {key!r}: got a {type(value).__name__}, not an NDArray")
        arrays = list(value)
        for array in arrays:
            if not isinstance(array, mx.nd.NDArray):
                raise ArrayMismatch(f"key {key!r}: got a {type(array).__name__}, not an NDArray")
        if not arrays:
            raise ArrayMismatch(f"key {key!r}: got no array")
        return [(key, [classic(array) for array in arrays])]
    if not isinstance(key, (list, tuple)):
        raise KVStoreError(f"a key is {key!r}; it must be an int, a str, or a list of them")
    if not isinstance(value, (mx.nd.NDArray, Collection)):
        raise ArrayMismatch(f"keys {list(key)!r}: got a {type(value).__name__}, not NDArrays")
    if isinstance(value, mx.nd.NDArray) or len(key) != len(value):
        count = 1 if isinstance(value, mx.nd.NDArray) else len(value)
        raise KVStoreError(f"got {len(key)} keys and {count} values; they must be as many")
    grouped: Dict[Key, List[mx.nd.NDArray]] = {}
    for single, arrays in zip(key, value):
        for name, group in pairs(single, arrays):
            grouped.setdefault(name, []).extend(group)
    return list(grouped.items())


def identity(store: int, name: Key) -> int:
    """The number by which a store's key travels, the same in every process and run.

    Parameters
    ----------
    store
        The number of the store in its process, from 0.
    """
    if isinstance(name, int) and not 0 <= name < 1 << 63:
        raise KVStoreError(f"a key is {name}; it must be 0 to 2**63 - 1, or a str")
    if store == 0 and isinstance(name, int):
        return name
    text = name if store == 0 else f"{store} {name!r}"
    digest = hashlib.blake2b(str(text).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") | 1 << 63


def storage(stype: str) -> str:
    """What users call one of MXNet's storage types."""
    return "dense" if stype == "default" else stype


def stype_of(array: mx.nd.NDArray) -> str:
    """MXNet's storage type of an array, without asking MXNet about dense ones."""
    return array.stype if isinstance(array, mx.nd.sparse.BaseSparseNDArray) else "default"


def same_memory(one: mx.nd.NDArray, other: mx.nd.NDArray) -> bool:
    """Whether two arrays begin at the same place; waits for what is written to them."""
    places = []
    for array in (one, other):
        place = ctypes.c_void_p()
        mx.base.check_call(mx.base._LIB.MXNDArrayGetData(array.handle, ctypes.byref(place)))
        places.append(place.value)
    return places[0] == places[1]


def classic(array: mx.nd.NDArray) -> mx.nd.NDArray:
    """Arrays of mx.np refuse MXNet's older copies; this is the same memory."""
    return array.as_nd_ndarray() if isinstance(array, mx.np.ndarray) else array
