"""A worker that does what a script does with MXNet's own store: drop_in.py STORE DIRECTORY WHAT ...

Runs one task after the other, each with a store or keys of its own, and writes what it has in the
end to DIRECTORY/TASK-RANK.npz. A task is an interface, an optimizer and a number of devices, with
colons between them; or "2bit"; or an interface, "saving" or "loading", and a number of devices. The
name of a store may follow.
"""

from __future__ import annotations

import sys
from typing import Any

import kvstore_ext  # noqa: F401 - makes the store's name known
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from tests.support import results
from tests.support.results import Arrays
from tests.support.tasks.own_keys import OwnKeys
from tests.support.tasks.training import BATCH, SEED, make_batch, make_network

STEPS = 50
HALF = 4  # steps before saving, and after
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-3},
    "adam": {"learning_rate": 0.01},
    "lamb": {"learning_rate": 0.01, "wd": 1e-3},
}
CROSS_ENTROPY = gluon.loss.SoftmaxCrossEntropyLoss()


class TrainerTask:
    """A network with gluon.Trainer."""

    def __init__(self, store: Any, optimizer: str, devices: list[mx.Context]) -> None:
        self._store, self._devices = store, devices
        self._network = make_network()
        self._parameters = self._network.collect_params()
        self._parameters.reset_ctx(devices)
        self._trainer = gluon.Trainer(self._parameters, optimizer, OPTIMIZERS[optimizer], store)

    def steps(self, numbers: range) -> None:
        for step in numbers:
            self.backward(step)
            self._trainer.step(BATCH * self._store.num_workers)

    def backward(self, step: int) -> None:
        parts = [
            gluon.utils.split_and_load(part, self._devices)
            for part in make_batch(step, self._store.rank)
        ]
        with autograd.record():
            losses = [CROSS_ENTROPY(self._network(x), y) for x, y in zip(*parts)]
        autograd.backward(losses)

    def save(self, file: str) -> None:
        self._parameters.save(f"{file}.params")
        self._trainer.save_states(f"{file}.states")

    def load(self, file: str) -> None:
        self._parameters.load(f"{file}.params", self._devices)
        self._trainer.load_states(f"{file}.states")

    def numbers(self) -> Arrays:
        return {name: p.data().asnumpy() for name, p in self._parameters.items()}


class BareTask(TrainerTask):
    """A network with the store's own calls."""

    def __init__(self, store: Any, optimizer: str, devices: list[mx.Context]) -> None:
        super().__init__(store, optimizer, devices)
        scale = 1 / (BATCH * store.num_workers)
        store.set_optimizer(
            mx.optimizer.create(optimizer, rescale_grad=scale, **OPTIMIZERS[optimizer])
        )
        for key, parameter in enumerate(self._parameters.values()):
            store.init(key, parameter.data())
            store.pull(key, parameter.list_data())

    def steps(self, numbers: range) -> None:
        for step in numbers:
            self.backward(step)
            for key, parameter in enumerate(self._parameters.values()):
                self._store.push(key, parameter.list_grad(), priority=-key)
                self._store.pull(key, parameter.list_data(), priority=-key)


class ModuleTask:
    """A network with Module."""

    def __init__(self, store: Any, optimizer: str, devices: list[mx.Context]) -> None:
        self._store, self._optimizer, self._devices = store, optimizer, devices
        mx.random.seed(SEED)
        network = make_network()
        symbol = mx.sym.SoftmaxOutput(network(mx.sym.var("data")), name="softmax")
        values = {name: value.data() for name, value in network.collect_params().items()}
        self._module = mx.mod.Module(symbol, context=devices)
        self._bind()
        self._module.init_params(arg_params=values)

    def _bind(self) -> None:
        images, labels = make_batch(0, 0)
        self._module.bind([("data", images.shape)], [("softmax_label", labels.shape)])

    def _init_optimizer(self) -> None:
        arguments = OPTIMIZERS[self._optimizer]
        self._module.init_optimizer(self._store, self._optimizer, arguments)

    def steps(self, numbers: range) -> None:
        if not self._module.optimizer_initialized:
            self._init_optimizer()
        for step in numbers:
            images, labels = make_batch(step, self._store.rank)
            self._module.forward_backward(mx.io.DataBatch([images], [labels]))
            self._module.update()

    def save(self, file: str) -> None:
        self._module.save_checkpoint(file, 0, save_optimizer_states=True)

    def load(self, file: str) -> None:
        self._module = mx.mod.Module.load(file, 0, True, context=self._devices)
        self._bind()
        self._init_optimizer()

    def numbers(self) -> Arrays:
        return {name: value.asnumpy() for name, value in self._module.get_params()[0].items()}


TASKS: dict[str, Any] = {"trainer": TrainerTask, "bare": BareTask, "module": ModuleTask}


def compressed(store: Any) -> Arrays:
    """Sums of compressed gradients, round after round."""
    store.set_gradient_compression({"type": "2bit", "threshold": 0.25})
    random = np.random.RandomState(store.rank)
    found = {}
    for key, shape in enumerate([(1,), (7,), (300, 5), (20, 3, 11)]):
        store.init(key, mx.nd.zeros(shape))
        for step in range(6):
            store.push(key, mx.nd.array(random.randn(*shape) / 4))
            out = mx.nd.zeros(shape)
            store.pull(key, out)
            found[f"{key}-{step}"] = out.asnumpy()
    return found


def run(store: Any, directory: str, task: str) -> Arrays:
    if task == "2bit":
        return compressed(store)
    interface, what, devices = task.split(":")[:3]
    contexts = [mx.cpu(i) for i in range(int(devices))]
    if what in OPTIMIZERS:
        trained = TASKS[interface](store, what, contexts)
        trained.steps(range(STEPS))
        return trained.numbers()
    file = f"{directory}/{task.replace(what, 'saved')}-{store.rank}"
    trained = TASKS[interface](store, "sgd" if interface == "module" else "adam", contexts)
    if what == "saving":
        trained.steps(range(HALF))
        trained.save(file)
    else:
        trained.load(file)
    trained.steps(range(HALF, 2 * HALF))
    return trained.numbers()


def main(name: str, directory: str, *tasks: str) -> None:
    stock = mx.kv.create(name) if name == "dist_sync" else None
    for task in tasks:
        stores = [*task.split(":")[3:], name]
        store = OwnKeys(stock, task) if stock else mx.kv.create(stores[0])
        found = run(store, directory, task)
        results.save(directory, task, store.rank, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
