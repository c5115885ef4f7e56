"""What ec_dnn, and the broadcasts that it uses, answer on each of three workers."""
from __future__ import annotations

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import ec_dnn
from mxnet.gluon import nn
from mxnet.kvstore import KVStore


def a_root_that_is_no_worker_is_refused(store: KVStore) -> None:
    for root in (-1, 3):
        with pytest.raises(kvstore_ext.KVStoreError, match=f"root is {root}.*0 to 2"):
            store.broadcast_from(root, "root", mx.nd.ones((3,)))


def an_array_unlike_the_keys_first_is_refused(store: KVStore) -> None:
    store.broadcast_from(0, "a", mx.nd.ones((3,)))
    for other in (mx.nd.ones((4,)), mx.nd.ones((3,), dtype="float64")):
        with pytest.raises(kvstore_ext.ArrayMismatch, match="key 'a'"):
            store.broadcast_from(0, "a", other)


def a_method_of_one_worker_is_refused(store: KVStore) -> None:
    method = ec_dnn.Method("s_dnn", tau=1)
    with pytest.raises(kvstore_ext.OptionError, match="s_dnn is for one worker; the job has 3"):
        ec_dnn.Trainer(None, None, "sgd", method=method, store=store, batch_size=1)


def fewer_examples_than_models_have_equal_coefficients_and_a_warning(store: KVStore) -> None:
    """Three examples, of which two are relabelled, for three models."""
    network = nn.Dense(2, in_units=1)
    network.initialize()
    data = (np.arange(3.0).reshape(3, 1), np.array([0, 1, 0]))
    method = ec_dnn.Method("ec_dnn_r", tau=1)
    trainer = ec_dnn.Trainer(network, data, "sgd", method=method, store=store, batch_size=2)
    with pytest.warns(UserWarning, match="relabels 2 examples, fewer than the 3 models.*1/K"):
        (report,) = trainer.rounds(1)
    assert report.coefficients.tolist() == [1 / 3] * 3


CHECKS = {
    check.__name__: check
    for check in (
        a_root_that_is_no_worker_is_refused,
        an_array_unlike_the_keys_first_is_refused,
        a_method_of_one_worker_is_refused,
        fewer_examples_than_models_have_equal_coefficients_and_a_warning,
    )
}
