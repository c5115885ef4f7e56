"""What ec_dnn, and the broadcasts that it uses, answer on each of three workers."""
from __future__ import annotations

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import ec_dnn
from mxnet import gluon
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
    with pytest.raises(kvstore_ext.ArrayMismatch, match="key 'b': got a row_sparse array"):
        store.broadcast_from(0, "b", mx.nd.zeros((3, 2)).tostype("row_sparse"))
    store.broadcast_from(0, "b", mx.nd.ones((4,)))  # whose shape nobody has told before


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


def a_network_of_float64_is_trained(store: KVStore) -> None:
    """Its scores count as float32. MXNet has no dense layer of float16 for CPUs."""
    network = nn.Dense(2, in_units=1)
    network.initialize()
    network.cast("float64")
    inputs = np.arange(4.0).reshape(4, 1)
    data = gluon.data.ArrayDataset(inputs, np.array([0, 1, 0, 1]))
    method = ec_dnn.Method("ec_dnn_s", tau=2)
    trainer = ec_dnn.Trainer(
        network, data, "sgd", {"learning_rate": 0.1}, method=method, store=store, batch_size=2
    )
    assert len(list(trainer.rounds(1))) == 1
    together = trainer.global_model(made_of_float64)
    assert np.isfinite(together(mx.nd.array(inputs, dtype="float64")).asnumpy()).all()


def made_of_float64() -> nn.Dense:
    network = nn.Dense(2, in_units=1)
    network.cast("float64")
    return network


def a_snapshot_of_another_optimizer_is_refused(store: KVStore) -> None:
    data = (np.arange(4.0).reshape(4, 1), np.array([0, 1, 0, 1]))
    method = ec_dnn.Method("ma_dnn", tau=1)

    parts, trainers = [], []
    for optimizer in ("sgd", "adam"):
        network = nn.Dense(2, in_units=1)
        network.initialize()
        known = set(store.parts_in_snapshots())
        trainers.append(
            ec_dnn.Trainer(network, data, optimizer, method=method, store=store, batch_size=2)
        )
        parts += [part for name, part in store.parts_in_snapshots().items() if name not in known]
    one, other = parts
    with pytest.raises(kvstore_ext.KVStoreError, match="it has an optimizer SGD; this run has Ad"):
        other.check(one.about())


CHECKS = {
    check.__name__: check
    for check in (
        a_root_that_is_no_worker_is_refused,
        an_array_unlike_the_keys_first_is_refused,
        a_method_of_one_worker_is_refused,
        fewer_examples_than_models_have_equal_coefficients_and_a_warning,
        a_network_of_float64_is_trained,
        a_snapshot_of_another_optimizer_is_refused,
    )
}
