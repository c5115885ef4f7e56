"""A worker that runs checks on one store and says of each whether it passed: run_checks.py MODULE.

The module has CHECKS: functions of a store, by what they promise.
"""
from __future__ import annotations

import importlib
import sys

import kvstore_ext
import mxnet as mx
import pytest

from tests.support.outcomes import attempt


def closing_is_final(store: mx.kvstore.KVStore) -> None:
    store.close()
    store.close()
    for call in (store.push, store.pull, store.init):
        with pytest.raises(kvstore_ext.KVStoreError, match="closed"):
            call(0, mx.nd.ones((1,)))


def stores_share_their_options(_: mx.kvstore.KVStore) -> None:
    with pytest.raises(kvstore_ext.OptionError, match="the stores of a process share their opt"):
        kvstore_ext.P3Worker(kvstore_ext.Options(slice_bytes=1000))


def main(module: str) -> None:
    store = mx.kv.create("p3")
    for promise, check in importlib.import_module(module).CHECKS.items():
        attempt(promise, check, store)
    attempt("stores_share_their_options", stores_share_their_options, store)
    attempt("closing_is_final", closing_is_final, store)


if __name__ == "__main__":
    main(*sys.argv[1:])
