"""A worker that runs a script in which dist_sync is p3: run_replaced.py SCRIPT ARGUMENT ..."""
from __future__ import annotations

import sys

import kvstore_ext  # noqa: F401 - makes the stores' names known
from kvstore_ext.mxnet_hooks import as_main
from mxnet.kvstore import KVStoreBase

if __name__ == "__main__":
    KVStoreBase.kv_registry["dist_sync"] = KVStoreBase.kv_registry["p3"]
    as_main.run_script(sys.argv[1], sys.argv[2:])
