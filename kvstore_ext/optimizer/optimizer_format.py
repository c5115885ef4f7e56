"""An optimizer on its way to the servers, as data: what arrives from there must not run code.

It travels as json. None, truth, numbers and words are themselves; anything else is a list that
begins with what it is:

    ["list", value, ...]            likewise "tuple", "set" and "frozenset"
    ["dict", [key, value], ...]     likewise "OrderedDict"
    ["bytes", text]                 in base64
    ["complex", real, imaginary]
    ["array", dtype, shape, text]   of numbers, in base64; likewise "scalar" and "NDArray"
    ["object", module, class, attributes]
    ["again", number]               what began as that one of those that can change: an optimizer
                                    counts in a dictionary to which it has two ways

Objects are MXNet's own optimizers and schedulers, and of classes of modules that are trusted.
"""
from __future__ import annotations

import base64
import importlib
import json
import sys
from collections import OrderedDict
from typing import Any, Dict, List, Tuple

import mxnet as mx
import numpy as np

from ..errors import KVStoreError
from .settings import Multipliers, multipliers
from .slice_optimizer import without_schedule

_PLAIN = (type(None), bool, int, float, str)
_SEQUENCES = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}
_TABLES = {kind.__name__: kind for kind in (dict, OrderedDict)}
_NUMBERS = "biufc"  # as NumPy's dtypes call their kinds


def pack_optimizer(optimizer: mx.optimizer.Optimizer) -> str:
    """An optimizer without its schedule (settings.py) and its parameters' multipliers, as text.

    Raises TypeError for an attribute that is no data.
    """
    return json.dumps(_Packer().pack((without_schedule(optimizer), multipliers(optimizer))))


def unpack_optimizer(
    text: str, trusted_modules: Tuple[str, ...]
) -> Tuple[mx.optimizer.Optimizer, Multipliers]:
    """What `pack_optimizer` packed.

    Parameters
    ----------
    text
        Of a worker, or of a stranger.
    trusted_modules
        Modules that the server's operator trusts, by their full names.

    Raises
    ------
    KVStoreError
        For anything else. Where a class was refused, it says which are allowed.
    """
    try:
        found = _Unpacker(trusted_modules).unpack(json.loads(text))
    except KVStoreError:
        raise
    except Exception as error:
        raise KVStoreError(f"a worker sent no optimizer: {type(error).__name__}: {error}") from None
    kinds = [type(part) for part in found] if isinstance(found, tuple) else [type(found)]
    if len(kinds) != 2 or not issubclass(kinds[0], mx.optimizer.Optimizer) or kinds[1] is not dict:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise KVStoreError(f"a worker sent {names}; it must be an optimizer and a dict")
    return found


class _Packer:
    def __init__(self) -> None:
        self._seen: Dict[int, Tuple[int, Any]] = {}  # by id: the number, and what keeps the id

    def pack(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is bytes:
            return ["bytes", base64.b64encode(value).decode()]
        if kind is complex:
            return ["complex", value.real, value.imag]
        if isinstance(value, np.generic):
            return self._array("scalar", np.asarray(value))
        if id(value) in self._seen:
            return ["again", self._seen[id(value)][0]]
        if kind not in (tuple, frozenset):
            self._seen[id(value)] = (len(self._seen), value)
        if kind is np.ndarray:
            return self._array("array", value)
        if kind is mx.nd.NDArray:
            return self._array("NDArray", value.asnumpy())
        if kind in _SEQUENCES.values():
            return [kind.__name__, *map(self.pack, value)]
        if kind in _TABLES.values():
            return [kind.__name__, *([self.pack(k), self.pack(v)] for k, v in value.items())]
        return ["object", kind.__module__, kind.__qualname__, self.pack(_attributes(value))]

    @staticmethod
    def _array(kind: str, array: np.ndarray) -> List[Any]:
        if array.dtype.kind not in _NUMBERS:
            raise TypeError(f"an array of {array.dtype}; arrays must be of numbers")
        data = base64.b64encode(array.tobytes()).decode()
        return [kind, array.dtype.str, list(array.shape), data]


def _attributes(value: Any) -> Any:
    """What an object wants to be made of again; raises TypeError for one that is more than that."""
    made = value.__reduce_ex__(2)  # by which function, of what, and with which attributes
    if isinstance(made, str) or made[0].__name__ != "__newobj__" or made[1] != (type(value),):
        raise TypeError(f"a {type(value).__name__} is neither data nor an object with attributes")
    if any(made[3:]):
        raise TypeError(f"a {type(value).__name__} is more than an object with attributes")
    return made[2]


class _Unpacker:
    def __init__(self, modules: Tuple[str, ...]) -> None:
        self._modules = modules
        self._known: List[Any] = []  # by number

    def unpack(self, packed: Any) -> Any:
        if type(packed) in _PLAIN:
            return packed
        kind, *content = packed
        if kind in ("list", "set", "object", "again", "array", "NDArray") or kind in _TABLES:
            return self._changing(kind, content)
        if kind == "bytes":
            return base64.b64decode(content[0])
        if kind == "complex":
            return complex(*content)
        if kind == "scalar":
            return _array(*content)[()]
        return _SEQUENCES[kind](map(self.unpack, content))

    def _changing(self, kind: str, content: List[Any]) -> Any:
        if kind == "again":
            return self._known[content[0]]
        if kind in ("array", "NDArray"):
            made: Any = _array(*content)
            if kind == "NDArray":
                made = mx.nd.array(made, dtype=made.dtype)
            self._known.append(made)
            return made
        if kind == "object":
            return self._object(*content)
        made = {**_SEQUENCES, **_TABLES}[kind]()
        self._known.append(made)
        if kind == "list":
            made.extend(map(self.unpack, content))
        elif kind == "set":
            made.update(map(self.unpack, content))
        else:
            made.update((self.unpack(key), self.unpack(value)) for key, value in content)
        return made

    def _object(self, module: str, name: str, packed: Any) -> Any:
        kind = self._class(module, name)
        made = kind.__new__(kind)
        self._known.append(made)
        attributes = self.unpack(packed)
        if hasattr(made, "__setstate__"):
            made.__setstate__(attributes)
        else:
            vars(made).update(attributes or {})
        return made

    def _class(self, module: str, name: str) -> Any:
        # getattr takes a dotted name for what it is, no path: module.os.system is not reached.
        if module in self._modules:
            found = getattr(importlib.import_module(module), name, None)
            if isinstance(found, type) and found.__module__ == module:
                return found
        elif module.startswith("mxnet."):
            found = getattr(sys.modules.get(module), name, None)
            kinds = (mx.optimizer.Optimizer, mx.lr_scheduler.LRScheduler)
            if isinstance(found, type) and issubclass(found, kinds):
                return found
        way_out = f"start them with --trust {module}"
        if module == "__main__":
            way_out = "put it into a module of its own, which the servers are told to --trust"
        raise KVStoreError(
            f"refused to load {module}.{name}: servers load MXNet's optimizers and schedulers, and "
            f"classes of the modules named with --trust ({', '.join(self._modules) or 'none'}). "
            f"For an optimizer of your own {way_out}, or update on the workers with "
            "update_on_kvstore=False"
        )


def _array(dtype: str, shape: List[int], data: str) -> np.ndarray:
    if not isinstance(dtype, str) or np.dtype(dtype).kind not in _NUMBERS:
        raise KVStoreError(f"refused an array of {dtype!r}; it must be of numbers")
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape).copy()
