"""A worker that runs all of checks.py on one store, and says of each whether it passed."""
from __future__ import annotations

import traceback

import kvstore_ext
import mxnet as mx
import pytest

from tests.support.checks import CHECKS


def assert_closed(store: mx.kvstore.KVStore) -> None:
    store.close()
    store.close()
    for call in (store.push, store.pull, store.init):
        with pytest.raises(kvstore_ext.KVStoreError, match="closed"):
            call(0, mx.nd.ones((1,)))


def main() -> None:
    store = mx.kv.create("p3")
    checks = {**CHECKS, "closing_is_final": assert_closed}
    for name, check in checks.items():
        try:
            check(store)
        except Exception:
            print(f"failed {name}\n{traceback.format_exc()}")
        else:
            print(f"passed {name}")


if __name__ == "__main__":
    main()
