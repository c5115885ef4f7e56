"""MXNet's own compression, 2bit, by the call that it has for that."""
from __future__ import annotations

from typing import Any

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from mxnet.kvstore import KVStore

from tests.support.checks.values import assert_equal


def two_bit_compression_carries_the_rest_over(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("key", mx.nd.zeros((5, 7)))
    left = np.zeros((5, 7), np.float32)
    values = np.linspace(-1.2, 1.2, 35, dtype=np.float32).reshape(5, 7)
    for _ in range(4):
        out = mx.nd.zeros((5, 7))
        store.pushpull("key", mx.nd.array(values), out=out)
        left = left + values
        sent = np.where(left >= 0.5, 0.5, np.where(left <= -0.5, -0.5, 0)).astype(np.float32)
        left = left - sent
        assert_equal(out, sent * store.num_workers)
    store.close()


def compression_that_cannot_be_is_refused(_: KVStore) -> None:
    store = mx.kv.create("p3")
    for parameters, words in (
        ({"type": "3bit"}, ["'3bit'", "'2bit'"]),
        ({"threshold": 0.5}, ["None", "'2bit'"]),
        ({"type": "2bit", "treshold": 0.5}, ["'treshold'", "threshold"]),
        ({"type": "2bit", "threshold": 0}, ["0.0", "above 0"]),
        ({"type": "2bit", "threshold": "much"}, ["'much'", "number"]),
    ):
        refused(store, parameters, words)
    store.close()


def compression_after_the_first_key_is_refused(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": "2bit"})
    store.init("key", mx.nd.zeros((3,)))
    refused(store, {"type": "2bit", "threshold": 0.25}, ["1 keys", "before the first"])
    store.close()


def two_bit_compression_of_other_arrays_than_dense_float32_is_refused(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": "2bit"})
    for value in (mx.nd.zeros((3,), dtype="float64"), mx.nd.zeros((3, 2)).tostype("row_sparse")):
        with pytest.raises(kvstore_ext.ArrayMismatch, match=r"'wrong'.*2bit.*float32"):
            store.init("wrong", value)
    store.close()


def refused(store: KVStore, parameters: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(kvstore_ext.KVStoreError) as caught:
        store.set_gradient_compression(parameters)
    assert all(word in str(caught.value) for word in words)


CHECKS = {
    check.__name__: check
    for check in (
        two_bit_compression_carries_the_rest_over,
        compression_that_cannot_be_is_refused,
        compression_after_the_first_key_is_refused,
        two_bit_compression_of_other_arrays_than_dense_float32_is_refused,
    )
}
