"""The names by which mx.kv.create makes our stores."""
from __future__ import annotations

from mxnet.kvstore import KVStoreBase

from ..compression import TYPES
from ..store.p3_worker import P3Worker


def register() -> None:
    """Makes them known to MXNet: 'p3', and one a compression."""
    for name in ("p3", "dist_sync_p3"):
        KVStoreBase.kv_registry[name] = P3Worker
    for name, method in TYPES.items():
        about = {"method_name": name, "__doc__": method.__doc__, "__module__": P3Worker.__module__}
        store = type(method.__name__, (P3Worker,), about)
        KVStoreBase.kv_registry[name] = KVStoreBase.kv_registry[f"dist_sync_{name}"] = store
        if method.store_type is not None:
            KVStoreBase.kv_registry[method.store_type] = store
