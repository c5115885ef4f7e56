"""training.py's task, trained by gluon.Trainer and by Module as users would."""
from __future__ import annotations

from typing import Any

import mxnet as mx

from tests.support.results import Arrays
from tests.support.tasks.training import BATCH, SEED, STEPS, make_batch, make_network

DEVICES = [mx.cpu(0), mx.cpu(1)]
Gradients = dict  # name -> mx.nd.NDArray


class TrainerTask:
    """A network and its Trainer; the batch is split over the devices."""

    def __init__(
        self, store: Any, workers: int, devices: int, on_servers: bool, multiplied: bool
    ) -> None:
        self._devices = DEVICES[:devices]
        self._batch = BATCH * workers
        self.network = make_network()
        self.parameters = self.network.collect_params()
        self.parameters.reset_ctx(self._devices)
        if multiplied:
            for name, parameter in self.parameters.items():
                parameter.lr_mult, parameter.wd_mult = (2, 0) if "bias" in name else (0.5, 3)
        schedule = mx.lr_scheduler.MultiFactorScheduler([3, 6], 0.5, base_lr=0.1)
        arguments = {"learning_rate": 0.1, "momentum": 0.9, "wd": 1e-3, "lr_scheduler": schedule}
        self._trainer = mx.gluon.Trainer(
            self.parameters, "sgd", arguments, store, update_on_kvstore=on_servers
        )

    def backward(self, step: int, rank: int) -> None:
        images, labels = make_batch(step, rank)
        parts = [mx.gluon.utils.split_and_load(part, self._devices) for part in (images, labels)]
        losses = []
        with mx.autograd.record():
            for some_images, some_labels in zip(*parts):
                output = self.network(some_images)
                losses.append(mx.gluon.loss.SoftmaxCrossEntropyLoss()(output, some_labels))
        mx.autograd.backward(losses)

    def step(self) -> None:
        self._trainer.step(self._batch)

    def numbers(self) -> Arrays:
        """The parameters' values; asserts that all devices have the same."""
        found = {}
        for name, parameter in self.parameters.items():
            first, *others = [data.asnumpy() for data in parameter.list_data()]
            assert all((other == first).all() for other in others)
            found[name] = first
        return found


def train_with_trainer(
    store: Any, rank: int, workers: int, devices: int, on_servers: bool, multiplied: bool
) -> Arrays:
    """A worker's part."""
    task = TrainerTask(store, workers, devices, on_servers, multiplied)
    for step in range(STEPS):
        task.backward(step, rank)
        task.step()
    return task.numbers()


def train_alone_with_trainer(workers: int, devices: int, multiplied: bool) -> Arrays:
    """One process without a store, which adds all workers' gradients in the order of ranks."""
    task = TrainerTask(None, workers, 1, False, multiplied)
    worker = TrainerTask(None, workers, devices, False, multiplied)
    for step in range(STEPS):
        sums: Gradients = {}
        for name, parameter in worker.parameters.items():
            parameter.set_data(task.parameters[name].data())
        for rank in range(workers):
            worker.backward(step, rank)
            for name, parameter in worker.parameters.items():
                first, *others = parameter.list_grad()
                gradient = sum((other.as_in_context(mx.cpu()) for other in others), first.copy())
                sums[name] = sums[name] + gradient if name in sums else gradient
        task.backward(step, 0)  # Trainer wants fresh gradients
        for name, total in sums.items():
            task.parameters[name].grad()[:] = total
        task.step()
    return task.numbers()


def train_with_module(store: Any, rank: int, devices: int) -> Arrays:
    """Module.fit on a worker's own 4 batches, three times."""
    mx.random.seed(SEED)
    network = make_network()
    symbol = mx.sym.SoftmaxOutput(network(mx.sym.var("data")), name="softmax")
    batches = [make_batch(step, rank) for step in range(4)]
    images, labels = (mx.nd.concat(*part, dim=0) for part in zip(*batches))
    module = mx.mod.Module(symbol, context=DEVICES[:devices])
    schedule = mx.lr_scheduler.FactorScheduler(5, 0.5, base_lr=0.1)
    module.fit(
        mx.io.NDArrayIter(images, labels, BATCH),
        num_epoch=3,
        kvstore=store,
        optimizer="sgd",
        optimizer_params={
            "learning_rate": 0.1, "momentum": 0.9, "wd": 1e-3, "lr_scheduler": schedule
        },
        arg_params={name: value.data() for name, value in network.collect_params().items()},
    )
    return {name: value.asnumpy() for name, value in module.get_params()[0].items()}
