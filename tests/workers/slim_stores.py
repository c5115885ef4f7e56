"""What a script does with the store slim_dp, checked on every worker: slim_stores.py CHECK ..."""
from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import ArrayMismatch, KVStoreError, OptionError
from mxnet import gluon
from slim import SHAPES, Case, gradient, initial, make_optimizer
from training import BATCH, make_batch, make_network
from workers.drop_in import CROSS_ENTROPY

OPTIONS = {"type": "slim_dp", "alpha": 0.4, "beta": 0.2, "p": 2, "q": 3}


def open_store(**options: Any) -> mx.kvstore.KVStore:
    store = mx.kv.create("p3")
    store.set_gradient_compression({**OPTIONS, **options})
    return store


class Bare:
    """A script that updates by pushpull."""

    def __init__(self, store: mx.kvstore.KVStore) -> None:
        self.store = store
        store.set_optimizer(make_optimizer())
        self.parameters = [mx.nd.array(initial(key)) for key in range(len(SHAPES))]
        for key, array in enumerate(self.parameters):
            store.broadcast(key, array, out=array)

    def train(self, first: int, last: int) -> None:
        for step in range(first, last):
            for key, array in enumerate(self.parameters):
                change = gradient(Case(), self.store.rank, key, step, array.asnumpy())
                self.store.pushpull(key, mx.nd.array(change), out=array)

    def values(self) -> list[np.ndarray]:
        return [array.asnumpy() for array in self.parameters]


def go_on(directory: str, first: str, last: str) -> None:
    """Trains a part of a run, from the states that the part before has left."""
    script = Bare(open_store(core_delay=1))
    states, models = (Path(directory) / f"{what}-{script.store.rank}" for what in "sm")
    if int(first) > 0:
        script.store.load_optimizer_states(str(states))
    script.train(int(first), int(last))
    script.store.save_optimizer_states(str(states), dump_optimizer=True)
    np.savez(f"{models}-{first}-{last}", *script.values())


def refused_updates() -> None:
    """What a worker pushes with a wrong core counts in the same round, with the right one."""
    store = open_store(p=1, q=2, alpha=0.5, beta=0.5)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    value = mx.nd.array(np.where(np.arange(128) < 64, 1000, 1))
    store.broadcast(0, value, out=value)
    there = mx.nd.zeros_like(value)
    for step in range(1, 8):
        if step == 5 and store.rank == 1:
            key = store._router.keys[0].identity
            while 2 not in store._worker.slim_cores(key):
                time.sleep(0.01)  # the server chooses it
            store._worker.set_slim_core(key, 0, 2, b"\x00" * 8 + b"\xff" * 8)
        store.pushpull(0, mx.nd.ones((128,)), out=value)
        store.pull(0, out=there)
        assert (there.asnumpy()[:64] == 1000 - step).all(), (step, there.asnumpy())
        assert (value.asnumpy()[:64] == 1000 - step).all(), step


@mx.util.use_np_shape
def excluded() -> None:
    """An excluded key has the mean of the gradients as well; one without elements is no trouble."""
    store = open_store(exclude=[1])
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    values = [mx.nd.zeros((100,)), mx.nd.zeros((100,)), mx.nd.zeros((0,))]
    for key, value in enumerate(values):
        store.broadcast(key, value, out=value)
    for _ in range(8):
        for key, value in enumerate(values):
            store.pushpull(key, mx.nd.ones(value.shape), out=value)
    assert (values[1].asnumpy() == -8).all()
    sparse = mx.nd.ones((100, 1)).tostype("row_sparse")
    store = open_store()
    store.set_optimizer(make_optimizer())
    store.init(0, mx.nd.zeros((100, 1)))
    with pytest.raises(ArrayMismatch, match=r"row_sparse.*exclude"):
        store.push(0, sparse)
    with pytest.raises(KVStoreError, match=r"pushpull\(key, gradients, out=parameters\)"):
        store.pushpull(0, mx.nd.zeros((100, 1)))


def two_models() -> None:
    """Two stores whose selections wait for each other's rounds."""
    stores = [open_store(p=1, q=2) for _ in range(2)]
    values = [mx.nd.array(np.arange(100.0)) for _ in stores]
    for store, value in zip(stores, values):
        store.set_optimizer(make_optimizer())
        store.broadcast(0, value, out=value)
    for _ in range(6):
        for store, value, other in zip(stores, values, reversed(values)):
            store.pushpull(0, other * 0.1, out=value)
    mx.nd.waitall()


def other_cores() -> None:
    """A worker, or a server, that has another core is told."""
    script = Bare(open_store(p=1))
    worker, rank = script.store._worker, script.store.rank
    script.train(0, 5)
    mx.nd.waitall()
    key = script.store._router.keys[0].identity
    before = worker.slim_cores(key)
    if rank == 1:
        members = before[1][0]
        worker.set_slim_core(key, 0, 1, bytes(255 - byte for byte in members[:8]) + members[8:])
        assert worker.slim_cores(key) != before
    script.train(5, 6)
    mx.nd.waitall()
    assert worker.slim_cores(key) == before
    script.store.pull(0, out=script.parameters[0])
    assert np.isfinite(script.parameters[0].asnumpy()).all()


def misuse() -> None:
    """What comes too late, or lacks something, is refused before anything is sent."""
    store = open_store()
    value = mx.nd.zeros((100,))
    store.broadcast("a", value, out=value)
    with pytest.raises(KVStoreError, match="set_optimizer"):
        store.pushpull("a", value, out=value)
    store.set_optimizer(make_optimizer())
    with pytest.raises(KVStoreError, match=r"pushpull\(key, gradients, out=parameters\)"):
        store.push("a", value)
    with pytest.raises(ArrayMismatch, match=r"float64.*float32"):
        store.init("b", mx.nd.zeros((3,), dtype="float64"))
    store.pushpull("a", value, out=value)
    with pytest.raises(KVStoreError, match="after the first round"):
        store.init("late", value)

    tiny = open_store(beta=0.001, alpha=0.4)
    tiny.set_optimizer(make_optimizer())
    tiny.broadcast(0, value, out=value)
    with pytest.raises(OptionError, match=r"beta is 0\.001"):
        tiny.pushpull(0, value, out=value)


def trainer() -> None:
    """With alpha = beta = 1 Trainer and Module train as with p3, within rounding; parameters
    without gradients stay out of it."""
    trained = {}
    for name in ("p3", "slim_dp"):
        network = make_network()
        with network.name_scope():
            network.add(gluon.nn.BatchNorm())
        network[-1].initialize()
        store = mx.kv.create("p3")
        if name == "slim_dp":
            store.set_gradient_compression({**OPTIONS, "alpha": 1, "beta": 1, "p": 1})
        made = gluon.Trainer(
            network.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store
        )
        for step in range(6):
            images, labels = make_batch(step, store.rank)
            with mx.autograd.record():
                loss = CROSS_ENTROPY(network(images), labels)
            loss.backward()
            made.step(BATCH * (store.num_workers if name == "p3" else 1))
        with store.global_parameters():
            trained[name] = [p.data().asnumpy() for p in made._params if p.grad_req != "null"]
    for one, other in zip(*trained.values()):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def module() -> None:
    """Module trains, and its own parameters come back after the global ones were looked at."""
    symbol = mx.sym.SoftmaxOutput(make_network()(mx.sym.var("data")), name="softmax")
    images, labels = make_batch(0, 0)
    data = mx.io.NDArrayIter(images, labels, BATCH)
    made = mx.mod.Module(symbol)
    store = mx.kv.create("slim_dp")
    assert store.type == "dist_slim_dp"
    made.fit(data, kvstore=store, num_epoch=3, optimizer_params={"learning_rate": 0.2})
    arrays = dict(zip(made._param_names, made._exec_group.param_arrays))
    own = {name: each[0].asnumpy() for name, each in arrays.items()}
    with store.global_parameters():
        there = {name: each[0].asnumpy() for name, each in arrays.items()}
    assert any((own[name] != there[name]).any() for name in own)
    for name, each in arrays.items():
        np.testing.assert_array_equal(each[0].asnumpy(), own[name])


def main(check: str, *arguments: str) -> None:
    anchor = mx.kv.create("p3")  # a job ends with its last store
    for name in check.split(","):
        globals()[name](*arguments)
    anchor.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
