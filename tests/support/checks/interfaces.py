"""Trainer and Module with stores whose workers update: of the names of compressions."""
from __future__ import annotations

from typing import Any

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext.optimizer.worker_states import CarryingUpdater
from mxnet import autograd, gluon
from mxnet.kvstore import KVStore

INPUT = (8, 7)


def of_rank_0(store: KVStore, values: np.ndarray) -> np.ndarray:
    """What rank 0 has given."""
    everybodys = mx.nd.zeros(values.shape)
    store.broadcast("compared", mx.nd.array(values), out=everybodys)
    return everybodys.asnumpy()


def module_of(store: KVStore, weight: Any = None, seed: int = 0) -> mx.mod.Module:
    """One layer, with first values of this seed."""
    value = mx.sym.FullyConnected(mx.sym.var("data"), weight, num_hidden=4, name="layer")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(value, name="softmax"), context=mx.cpu())
    module.bind([("data", INPUT)], [("softmax_label", INPUT[:1])])
    mx.random.seed(seed)
    module.init_params(mx.init.Uniform(0.5))
    return module


def a_module_that_updates_begins_with_rank_0s_parameters(p3: KVStore) -> None:
    store = mx.kv.create("qsgd")
    module = module_of(store, seed=1 + store.rank)
    own = module.get_params()[0]["layer_weight"].asnumpy()
    module.init_optimizer(store)
    assert not module._update_on_kvstore
    found = module.get_params()[0]["layer_weight"].asnumpy()
    np.testing.assert_array_equal(found, of_rank_0(p3, own))
    assert np.array_equal(found, own) == (store.rank == 0)
    store.close()


def a_module_gives_its_optimizer_to_another_store(p3: KVStore) -> None:
    rescale = 1 / (INPUT[0] * p3.num_workers)
    optimizer = mx.optimizer.SGD(momentum=0.9, wd=0.01, rescale_grad=rescale)
    module = module_of(p3)
    stores = [mx.kv.create("dgc") for _ in range(2)]
    for store in stores:
        module.init_optimizer(store, optimizer, force_init=True)
        assert store.method._momentum == 0.9
        assert optimizer.wd == pytest.approx(0.1)
        assert "Module" in store.parts_in_snapshots()
        assert isinstance(module._updater, CarryingUpdater)  # which saves what the store carries
    for store in stores:
        store.close()


def a_trainer_with_sparse_weights_updates_on_servers(p3: KVStore) -> None:
    store = mx.kv.create("terngrad")
    weight = gluon.Parameter("weight", shape=(6, 2), stype="row_sparse", grad_stype="row_sparse")
    weight.initialize(mx.init.One())
    trainer = gluon.Trainer([weight], "sgd", {"learning_rate": 1.0}, kvstore=store)
    rows = mx.nd.arange(6)
    with autograd.record():
        loss = mx.nd.sparse.sum(weight.row_sparse_data(rows)) * (store.rank + 1)
    loss.backward()
    trainer.step(1)
    found = weight.row_sparse_data(rows).asnumpy()
    np.testing.assert_array_equal(found, 1 - sum(range(1, store.num_workers + 1)))
    store.close()


def compression_comes_before_the_optimizer(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD(momentum=0.9))
    with pytest.raises(kvstore_ext.KVStoreError, match="must come before set_optimizer"):
        store.set_gradient_compression("dgc")
    store.close()
    store = mx.kv.create("p3")  # as one of two Modules
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("weight", mx.nd.ones((3,)))
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    with pytest.raises(kvstore_ext.KVStoreError, match="1 keys are initialised; it must come"):
        store.set_gradient_compression({"type": "2bit", "threshold": 0.25})
    store.close()


SPARSE = {
    check.__name__: check for check in (a_trainer_with_sparse_weights_updates_on_servers,)
}
CHECKS = {
    check.__name__: check
    for check in (
        a_module_that_updates_begins_with_rank_0s_parameters,
        a_module_gives_its_optimizer_to_another_store,
        compression_comes_before_the_optimizer,
    )
}
