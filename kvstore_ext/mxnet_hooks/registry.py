"""The names by which mx.kv.create makes our stores."""
from __future__ import annotations

from typing import Callable

from mxnet.kvstore import KVStoreBase

from ..compression import TYPES
from ..errors import KVStoreError
from ..store.p3_worker import P3Worker


def register() -> None:
    """Makes them known to MXNet: 'p3', one a compression, and those that there cannot be."""
    for name in ("p3", "dist_sync_p3"):
        KVStoreBase.kv_registry[name] = P3Worker
    for name, method in TYPES.items():
        about = {"method_name": name, "__doc__": method.__doc__, "__module__": P3Worker.__module__}
        store = type(method.__name__, (P3Worker,), about)
        KVStoreBase.kv_registry[name] = KVStoreBase.kv_registry[f"dist_sync_{name}"] = store
        if method.store_type is not None:
            KVStoreBase.kv_registry[method.store_type] = store
    # MXNet would make a local store of a name that it does not know, and train without a word.
    for name in ("dist_async_p3", "dist_p3_async", "async_p3", "p3_async"):
        KVStoreBase.kv_registry[name] = _refused(name)


def _refused(name: str) -> Callable[[], P3Worker]:
    def refuse() -> P3Worker:
        raise KVStoreError(
            f"there is no store {name!r}: p3 is synchronous, so every worker sees the sum of all "
            "gradients of a round. The stores are 'p3', 'dist_sync_p3' and "
            f"{', '.join(map(repr, TYPES))}"
        )

    return refuse
