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


def cluster_stands(handle: Any) -> bool:
    """Whether all have come to the scheduler, as far as the store of a server or scheduler knows.

    Call it seconds after the process has begun to serve: MXNet's answer is not safe before.
    """
    # The number of nodes that were silent for longer than -1 s: of all that this one hears of, or 0
    # before there are any.
    nodes = ctypes.c_int()
    everybody, seconds = 7, -1
    check_call(_LIB.MXKVStoreGetNumDeadNode(handle, everybody, ctypes.byref(nodes), seconds))
    return nodes.value > 0


def stock_store(kind: str) -> Any:
    """A store of MXNet's own, to be called by the methods of KVStore, which would free it twice."""
    return SimpleNamespace(handle=native_store(kind))
