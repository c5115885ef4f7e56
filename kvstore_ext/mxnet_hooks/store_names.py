"""The names of stores: which there are, and which one a mistyped name was meant to be."""
from __future__ import annotations

from itertools import product
from typing import Dict, List

from mxnet.kvstore import KVStoreBase

from ..config import role_of_process, servers_are_ours
from ..errors import KVStoreError
from ..protocol.commands import STOCK_SERVERS
from ..spelling import nearest
from ..store.p3_worker import P3Worker

# MXNet's own. It goes by parts of a name: whatever holds "dist" is a store of a cluster to it, and
# what it does not know is a local one.
_LOCAL = ("local", "device", "nccl")
_LOCAL_TOO = ("local_update_cpu", "local_allreduce_cpu", "local_allreduce_device")
_CLUSTER = ("dist_sync", "dist_device_sync", "dist_async", "dist_device_async")
_CLUSTER_WORDS = frozenset(("dist", "device", "sync", "async"))
# What users put before and behind a name of ours, since MXNet's names have it.
_BEFORE = (
    *("", "dist_", "sync_", "async_", "dist_sync_", "dist_async_"),
    *("dist_device_", "dist_device_sync_", "dist_device_async_"),
)
_BEHIND = ("", "_sync", "_async", "_device")


def our_names() -> List[str]:
    """The names by which mx.kv.create makes our stores, each in its short form."""
    kinds = KVStoreBase.kv_registry.items()
    ours = [name for name, kind in kinds if isinstance(kind, type) and issubclass(kind, P3Worker)]
    return [name for name in ours if not name.startswith("dist_")]


def spellings_of_ours() -> Dict[str, str]:
    """Those names by how users may have written them."""
    return {
        f"{before}{name}{behind}": name
        for name, before, behind in product(our_names(), _BEFORE, _BEHIND)
    }


def check_servers(name: str) -> None:
    """Raises KVStoreError for a store of MXNet's own in a job whose servers are kvstore_ext's: they
    would take its gradients, and leave out its optimizer."""
    if servers_are_ours() and role_of_process() == "worker":
        raise KVStoreError(
            f"{name!r} is MXNet's own store, and the servers of this job are kvstore_ext's: create "
            f"'p3', or start it with kvstore-launch --replace {name.lower()}=p3; {STOCK_SERVERS}"
        )


def check_name(name: str) -> None:
    """Raises KVStoreError for a name of which MXNet would make another store than was meant.

    Parameters
    ----------
    name
        What a script calls a store, in any case. Names that are registered, and all that are made
        of the words of MXNet's own, are left to MXNet.
    """
    plain = name.lower()
    words = plain.split("_")
    of_cluster = "dist" in words and _CLUSTER_WORDS.issuperset(words)
    if plain in KVStoreBase.kv_registry or plain in (*_LOCAL, *_LOCAL_TOO) or of_cluster:
        return
    stock = {name: name for name in (*_LOCAL, *_LOCAL_TOO, *_CLUSTER)}
    meant = nearest(plain, {**spellings_of_ours(), **stock})
    if meant is None:
        why = (
            f"the stores are {', '.join(our_names())}, each also as dist_sync_NAME, and MXNet's "
            f"own {', '.join((*_LOCAL, *_CLUSTER))}"
        )
    elif "async" in plain and meant not in stock:
        why = (
            f"{meant!r} is synchronous, so that every worker sees the sum of all gradients of a "
            "round: did you mean that?"
        )
    else:
        why = f"did you mean {meant!r}?"
    raise KVStoreError(f"there is no store {name!r}; {why}")
