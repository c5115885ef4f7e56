"""MXNet's own stores, as handles."""
from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

from mxnet.base import _LIB, check_call


def native_store(kind: str) -> Any:
    """A handle to a store of MXNet's own."""
    handle = ctypes.c_void_p()
    check_call(_LIB.MXKVStoreCreate(kind.encode(), ctypes.byref(handle)))
    return handle


def stock_store(kind: str) -> Any:
    """A store of MXNet's own, to be called by the methods of KVStore, which would free it twice."""
    return SimpleNamespace(handle=native_store(kind))
