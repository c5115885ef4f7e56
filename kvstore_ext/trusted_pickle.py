"""Unpickles an optimizer and nothing else: what arrives from the network must not run code."""
from __future__ import annotations

import importlib
import io
import pickle
from typing import Any, Tuple

import mxnet as mx

# Functions and types that pickles of plain values need.
_PLAIN = {
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("builtins", "bytearray"),
    ("builtins", "complex"),
    ("builtins", "range"),
    ("builtins", "slice"),
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
}


class _TrustedUnpickler(pickle.Unpickler):
    def __init__(self, data: bytes, modules: Tuple[str, ...]) -> None:
        super().__init__(io.BytesIO(data))
        self._modules = modules

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN or module in self._modules:
            return super().find_class(module, name)
        if module.startswith("mxnet."):
            found = getattr(importlib.import_module(module), name, None)
            kinds = (mx.optimizer.Optimizer, mx.lr_scheduler.LRScheduler)
            if isinstance(found, type) and issubclass(found, kinds):
                return found
        raise pickle.UnpicklingError(
            f"refused to load {module}.{name}: servers load MXNet's optimizers and schedulers, "
            "NumPy arrays, and the modules named with --trust "
            f"({', '.join(self._modules) or 'none'}). For an optimizer of your own start them "
            f"with --trust {module}, or update on the workers with update_on_kvstore=False"
        )


def load_trusted(data: bytes, modules: Tuple[str, ...] = ()) -> Any:
    """Unpickles data that may name only what find_class admits.

    Parameters
    ----------
    data
        A pickle.
    modules
        Modules that the server's operator trusts, by their full names.

    Raises
    ------
    pickle.UnpicklingError
        With the name that was refused and those that are allowed.
    """
    return _TrustedUnpickler(data, modules).load()
