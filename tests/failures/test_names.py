"""A mistyped name of a store is refused, with the right one, wherever a script can give it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Callable

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import KVStoreError, OptionError
from kvstore_ext.mxnet_hooks.store_names import check_name
from mxnet.kvstore import KVStoreBase

MEANT = {
    "dist_p3": "p3",
    "p4": "p3",
    "P3_sync": "p3",
    "dist_device_sync_p3": "p3",
    "tern_grad": "terngrad",
    "TernGrad2": "terngrad",
    "dist_terngrad": "terngrad",
    "dist-sync-terngrad": "terngrad",
    "slimdp": "slim_dp",
    "dist_qsqd": "qsgd",
    "one-bit": "onebit",
    "dist_sinc": "dist_sync",
    "devise": "device",
}
ASYNCHRONOUS = ["dist_async_p3", "p3_async", "async_p3", "dist_p3_async", "dist_async_terngrad"]


def create(name: str) -> None:
    mx.kv.create(name)


def train_with_trainer(name: str) -> None:
    """On one device, where MXNet makes no store of a name without 'dist'."""
    network = mx.gluon.nn.Dense(1, in_units=2)
    network.initialize()
    trainer = mx.gluon.Trainer(network.collect_params(), "sgd", kvstore=name)
    with mx.autograd.record():
        loss = network(mx.nd.ones((1, 2)))
    loss.backward()
    trainer.step(1)


def train_sparse_with_trainer(name: str) -> None:
    embedding = mx.gluon.nn.Embedding(3, 2, sparse_grad=True)
    embedding.initialize()
    trainer = mx.gluon.Trainer(embedding.collect_params(), "sgd", kvstore=name)
    with mx.autograd.record():
        loss = embedding(mx.nd.ones((1,)))
    loss.backward()
    trainer.step(1)


def fit_module(name: str) -> None:
    hidden = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1)
    output = mx.sym.LinearRegressionOutput(hidden, name="softmax")
    batches = mx.io.NDArrayIter(np.ones((4, 2)), np.ones((4, 1)), 2)
    mx.mod.Module(output).fit(batches, num_epoch=1, kvstore=name)


WAYS = [train_with_trainer, train_sparse_with_trainer, fit_module]


@pytest.mark.parametrize(
    ("give", "name"),
    [
        *((create, name) for name in MEANT),
        *((way, name) for way in WAYS for name in ("p4", "dist_p3")),
    ],
)
def test_the_right_name_is_said(give: Callable[[str], None], name: str) -> None:
    with pytest.raises(KVStoreError) as caught:
        give(name)
    assert str(caught.value) == f"there is no store {name!r}; did you mean {MEANT[name]!r}?"


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_asynchronous_stores_are_refused_as_such(name: str) -> None:
    meant = "terngrad" if "terngrad" in name else "p3"
    with pytest.raises(KVStoreError, match=f"no store '{name}'; '{meant}' is synchronous"):
        mx.kv.create(name)
    assert name not in KVStoreBase.kv_registry


def test_a_name_like_no_other_gets_the_list_of_those_that_can_be_made() -> None:
    with pytest.raises(KVStoreError) as caught:
        mx.kv.create("zookeeper")
    listed = str(caught.value)
    assert "\n" not in listed
    for name in ("p3", "terngrad", "slim_dp", "dist_sync_NAME", "dist_sync", "local"):
        assert name in listed
    assert not {"async_p3", "p3_async", "dist_async_p3", "teststore"} & set(listed.split(", "))


@pytest.mark.parametrize(
    "name",
    [
        *("local", "Local", "device", "nccl", "local_allreduce_cpu", "local_update_cpu"),
        *("dist", "dist_sync", "Dist_Async", "dist_sync_device", "dist_device_async"),
        *("p3", "P3", "dist_sync_p3", "dist_slim_dp", "teststore"),
    ],
)
def test_names_that_there_are_stay_as_they_were(name: str) -> None:
    check_name(name)


def test_a_store_that_a_user_has_registered_is_known() -> None:
    @KVStoreBase.register
    class P4(KVStoreBase):
        pass

    try:
        check_name("p4")
    finally:
        del KVStoreBase.kv_registry["p4"]


def test_a_module_loads_its_states_once_the_name_is_right(tmp_path: Path) -> None:
    hidden = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="hidden")
    trained = mx.mod.Module(mx.sym.LinearRegressionOutput(hidden, name="softmax"))
    batches = mx.io.NDArrayIter(np.ones((4, 2)), np.ones((4, 1)), 2)
    options = {"learning_rate": 0.1, "momentum": 0.9}
    trained.fit(batches, eval_metric="mse", num_epoch=1, kvstore="p3", optimizer_params=options)
    prefix = str(tmp_path / "trained")
    trained.save_checkpoint(prefix, 1, save_optimizer_states=True)
    trained._kvstore.close()
    module = mx.mod.Module.load(prefix, 1, load_optimizer_states=True)
    module.bind(batches.provide_data, batches.provide_label)
    with pytest.raises(KVStoreError, match="did you mean 'p3'"):
        module.init_optimizer("p4", "sgd", options)
    module.init_optimizer("p3", "sgd", options)
    module.save_optimizer_states(str(tmp_path / "loaded"))
    module._kvstore.close()
    saved, loaded = (
        pickle.loads((tmp_path / name).read_bytes()) for name in ("trained-0001.states", "loaded")
    )
    assert set(loaded) == set(saved) == {"hidden_weight", "hidden_bias"}
    for name, state in saved.items():
        assert state.asnumpy().all()
        np.testing.assert_array_equal(loaded[name].asnumpy(), state.asnumpy())


def test_a_store_beside_mxnets_own_p3_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By whose variable MXNet takes every store for one that cannot update parameters."""
    monkeypatch.setenv("DMLC_PS_VAN_TYPE", "p3")
    with pytest.raises(OptionError, match="DMLC_PS_VAN_TYPE is 'p3', which is MXNet's own P3; it"):
        mx.kv.create("p3")
    monkeypatch.setenv("DMLC_PS_VAN_TYPE", "zmq")
    mx.kv.create("p3").close()
