"""Runs that are interrupted: each with a store of its own, and everything that a run may have.

A network with dropout and running averages, data drawn from NumPy's and Python's generators, and an
optimizer with a state that counts its steps.
"""
from __future__ import annotations

import random
from typing import Any, Callable

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from tests.support.tasks import slim_dp

FEATURES, BATCH = 6, 4


class Run:
    """One store with what it trains; `step` makes a step of it, `values` says what has come out."""

    store: Any

    def begin(self) -> None:
        """To be called once the store goes on from a snapshot."""

    def step(self) -> None:
        raise NotImplementedError

    def values(self) -> dict[str, np.ndarray]:
        raise NotImplementedError


def _open(compression: dict[str, Any] | None = None) -> Any:
    store = mx.kv.create("p3")
    if compression:
        store.set_gradient_compression(compression)
    return store


def _data() -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
    """A batch that no other worker and no other step has."""
    images = np.random.standard_normal((BATCH, FEATURES)).astype(np.float32)
    return mx.nd.array(images * random.uniform(0.5, 2)), mx.nd.array(np.arange(BATCH) % 3)


class GluonRun(Run):
    """By Trainer, with parameters whose shapes only a first forward pass tells."""

    def __init__(self, optimizer: str, on_store: bool, **compression: Any) -> None:
        self.store = _open(compression)
        self.net = gluon.nn.HybridSequential(prefix="net_")
        with self.net.name_scope():
            self.net.add(gluon.nn.Dense(8, activation="relu"))
            self.net.add(gluon.nn.BatchNorm())
            self.net.add(gluon.nn.Dropout(0.3))
            self.net.add(gluon.nn.Dense(3))
        self.net.initialize(mx.init.Xavier())
        self.net.hybridize()
        schedule = mx.lr_scheduler.FactorScheduler(3, 0.8, base_lr=0.05)
        options = {"learning_rate": 0.05, "lr_scheduler": schedule}
        if optimizer == "sgd":
            options["momentum"] = 0.9
        self.trainer = gluon.Trainer(
            self.net.collect_params(),
            optimizer,
            options,
            kvstore=self.store,
            update_on_kvstore=on_store,
        )

    def step(self) -> None:
        images, labels = _data()
        with autograd.record():
            loss = gluon.loss.SoftmaxCrossEntropyLoss()(self.net(images), labels)
        loss.backward()
        self.trainer.step(BATCH)

    def values(self) -> dict[str, np.ndarray]:
        return {p.name: p.data().asnumpy() for p in self.net.collect_params().values()}


class ModuleRun(Run):
    """By Module, which knows its shapes."""

    def __init__(self, **compression: Any) -> None:
        self.store = _open(compression)
        data = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="first")
        data = mx.sym.Dropout(mx.sym.BatchNorm(data, name="normal"), p=0.3)
        data = mx.sym.FullyConnected(data, num_hidden=3, name="second")
        self.module = mx.mod.Module(mx.sym.SoftmaxOutput(data, name="softmax"))
        self.module.bind([("data", (BATCH, FEATURES))], [("softmax_label", (BATCH,))])
        self.module.init_params(mx.init.Xavier())
        self.module.init_optimizer(self.store, "adam", {"learning_rate": 0.02})

    def step(self) -> None:
        images, labels = _data()
        self.module.forward_backward(mx.io.DataBatch([images], [labels]))
        self.module.update()

    def values(self) -> dict[str, np.ndarray]:
        found = [*self.module.get_params()[0].items(), *self.module.get_params()[1].items()]
        return {name: array.asnumpy() for name, array in found}


class BareRun(Run):
    """By push and pull, of keys of several slices."""

    def __init__(self, optimizer: str, **compression: Any) -> None:
        self.store = _open(compression)
        self.store.set_optimizer(mx.optimizer.create(optimizer, learning_rate=0.1))
        self.arrays = [mx.nd.array(slim_dp.initial(key)) for key in range(len(slim_dp.SHAPES))]
        for key, array in enumerate(self.arrays):
            self.store.init(key, array)  # whose result nobody takes

    def begin(self) -> None:
        # The script's own arrays are its own matter.
        for key, array in enumerate(self.arrays):
            self.store.pull(key, out=array)

    def step(self) -> None:
        for key, array in enumerate(self.arrays):
            gradient = np.random.standard_normal(array.shape).astype(np.float32)
            self.store.push(key, mx.nd.array(gradient), priority=-key)
            self.store.pull(key, out=array, priority=-key)

    def values(self) -> dict[str, np.ndarray]:
        return {str(key): array.asnumpy() for key, array in enumerate(self.arrays)}


class SparseRun(Run):
    """Of a row-sparse weight, a dense one with row-sparse gradients, and a dense one."""

    shape = (6, 3)

    def __init__(self) -> None:
        self.store = _open()
        self.store.set_optimizer(mx.optimizer.create("adam", learning_rate=0.1))
        self.dense = [mx.nd.ones(self.shape), mx.nd.ones(self.shape)]
        self.store.init(0, mx.nd.ones(self.shape).tostype("row_sparse"))
        for key, array in enumerate(self.dense, 1):
            self.store.init(key, array)

    def begin(self) -> None:
        for key, array in enumerate(self.dense, 1):
            self.store.pull(key, out=array)

    def step(self) -> None:
        rows = mx.nd.array(np.sort(np.random.permutation(6)[:3]), dtype="int64")
        for key in range(3):
            values = mx.nd.array(np.random.standard_normal((3, 3)))
            gradient = mx.nd.sparse.row_sparse_array((values, rows), shape=self.shape)
            self.store.push(key, gradient if key < 2 else gradient.tostype("default"))
        self.begin()

    def values(self) -> dict[str, np.ndarray]:
        out = mx.nd.sparse.zeros("row_sparse", self.shape)
        self.store.row_sparse_pull(0, out=out, row_ids=mx.nd.arange(6, dtype="int64"))
        return {"0": out.asnumpy(), **{str(k): a.asnumpy() for k, a in enumerate(self.dense, 1)}}


class SlimRun(Run):
    """A model of each worker's own."""

    def __init__(self, **options: Any) -> None:
        self.store = slim_dp.open_store(**options)
        self.script = slim_dp.Bare(self.store)

    def step(self) -> None:
        for key, array in enumerate(self.script.parameters):
            value = np.random.standard_normal(array.shape).astype(np.float32)
            self.store.pushpull(key, (array - mx.nd.array(value)) / 2, out=array)

    def values(self) -> dict[str, np.ndarray]:
        with self.store.global_parameters():
            everywhere = {f"global {key}": v for key, v in self.script.values().items()}
        return {**self.script.values(), **everywhere}


class TwoRuns(Run):
    """Of two stores, in the snapshots of one."""

    def __init__(self) -> None:
        self.runs = (GluonRun("adam", True), BareRun("adam"))
        self.store = self.runs[0].store
        self.store.include_run_of(self.runs[1].store)

    def begin(self) -> None:
        for run in self.runs:
            run.begin()

    def step(self) -> None:
        for run in self.runs:
            run.step()

    def values(self) -> dict[str, np.ndarray]:
        return {
            f"{number} {name}": value
            for number, run in enumerate(self.runs)
            for name, value in run.values().items()
        }


RUNS: dict[str, Callable[[], Run]] = {
    "servers": lambda: GluonRun("adam", True),
    "workers": lambda: GluonRun("sgd", False),
    "residuals": lambda: GluonRun("sgd", False, type="onebit"),
    "quantized": lambda: BareRun("adam", type="qsgd", error_feedback=True),
    "dgc": lambda: GluonRun("sgd", False, type="dgc"),
    "ternary": lambda: GluonRun("sgd", False, type="terngrad"),
    "signs": lambda: GluonRun("sgd", False, type="signsgd"),
    "two_bits": lambda: BareRun("adam", type="2bit", threshold=0.5),
    "half": lambda: BareRun("adam", type="fp16", error_feedback=True),
    "module": ModuleRun,
    "bare": lambda: BareRun("adam"),
    "whole": lambda: BareRun("lamb"),  # whose updates need whole parameters
    "sparse": SparseRun,
    "slim": lambda: SlimRun(core_delay=1),
    "two": TwoRuns,  # behind all others, whose stores' numbers it would change
}


def seed(rank: int) -> None:
    """As a script does that is to draw the same numbers in every run, and others by rank."""
    mx.random.seed(rank + 1)
    np.random.seed(rank + 2)
    random.seed(rank + 3)
