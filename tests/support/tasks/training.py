"""A small training task for tests: fixed data and network, and what one process makes of it."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from tests.support.results import Arrays

STEPS = 8
BATCH = 8
SEED = 7


@dataclass(frozen=True)
class Case:
    """One way to train."""

    optimizer: str
    arguments: dict[str, Any]
    on_servers: bool = True
    dtype: str = "float32"
    # lr_mult and wd_mult by what a parameter's name ends with
    multipliers: dict[str, tuple[float, float]] = field(default_factory=dict)
    # learning rate multiplied by a half after so many steps, again and again
    halved_after: int | None = None

    def make_optimizer(self, workers: int) -> mx.optimizer.Optimizer:
        arguments = {"rescale_grad": 1 / (BATCH * workers), **self.arguments}
        if self.halved_after is not None:
            arguments["lr_scheduler"] = mx.lr_scheduler.FactorScheduler(
                self.halved_after, 0.5, base_lr=arguments["learning_rate"]
            )
        return mx.optimizer.create(self.optimizer, **arguments)


MOMENTUM = {"learning_rate": 0.1, "momentum": 0.9, "wd": 1e-3}

# Those that are not updated on the servers come first: servers keep their optimizer.
CASES = {
    "summed": Case("sgd", MOMENTUM, on_servers=False, halved_after=3),
    "summed64": Case("adam", {"learning_rate": 0.01}, on_servers=False, dtype="float64"),
    "sgd": Case("sgd", {"learning_rate": 0.1}),
    "momentum": Case("sgd", MOMENTUM),
    "adam": Case("adam", {"learning_rate": 0.01, "wd": 1e-3}),
    "schedule": Case("sgd", MOMENTUM, halved_after=3),
    "schedule64": Case("adam", {"learning_rate": 0.01}, dtype="float64", halved_after=3),
    "multipliers": Case(
        "sgd", MOMENTUM, multipliers={"weight": (0.5, 2.0), "bias": (2.0, 0.0)}, halved_after=3
    ),
}


def make_network(dtype: str = "float32") -> nn.HybridSequential:
    """A convolution and two dense layers: 2,150 parameters, the same ones at every call.

    Smooth, so that sums in another order stay a matter of rounding: where a maximum or a ReLU turns
    over, the last bit of a parameter moves a gradient.
    """
    network = nn.HybridSequential(prefix="net_")
    with network.name_scope():
        network.add(
            nn.Conv2D(6, 3, in_channels=1, activation="tanh"),
            nn.AvgPool2D(),
            nn.Dense(32, in_units=54, activation="tanh"),
            nn.Dense(10, in_units=32),
        )
    network.initialize()
    random = np.random.RandomState(SEED)
    for parameter in network.collect_params().values():
        parameter.set_data(mx.nd.array(random.uniform(-0.3, 0.3, parameter.shape)))
    network.cast(dtype)
    return network


def make_batch(step: int, rank: int, dtype: str = "float32") -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
    """What the worker of a rank learns from in a step: images (8, 1, 8, 8) and labels (8,)."""
    random = np.random.RandomState(1000 * step + rank)
    labels = random.randint(0, 10, BATCH)
    images = random.uniform(-1, 1, (BATCH, 1, 8, 8)) + labels[:, None, None, None] / 5
    return mx.nd.array(images, dtype=dtype), mx.nd.array(labels, dtype=dtype)


def backward(network: nn.HybridSequential, step: int, rank: int, dtype: str) -> None:
    """Computes gradients, summed over the batch."""
    images, labels = make_batch(step, rank, dtype)
    with mx.autograd.record():
        loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()(network(images), labels)
    loss.backward()


def numbers(network: nn.HybridSequential) -> Arrays:
    """The parameters' values."""
    return {name: p.data().asnumpy() for name, p in network.collect_params().items()}


def multiplied(optimizer: mx.optimizer.Optimizer, case: Case, keys: list[Any]) -> None:
    """Sets the case's multipliers for keys that end as its names do."""
    for ending, (lr_mult, wd_mult) in case.multipliers.items():
        optimizer.lr_mult.update({key: lr_mult for key in keys if key.endswith(ending)})
        optimizer.wd_mult.update({key: wd_mult for key in keys if key.endswith(ending)})


def train_alone(case: Case, workers: int) -> Arrays:
    """One process that adds all workers' gradients in the order of their ranks, and updates."""
    network = make_network(case.dtype)
    parameters = network.collect_params()
    optimizer = case.make_optimizer(workers)
    multiplied(optimizer, case, list(parameters))
    updater = mx.optimizer.get_updater(optimizer)
    for step in range(STEPS):
        sums: dict[str, mx.nd.NDArray] = {}
        for rank in range(workers):
            backward(network, step, rank, case.dtype)
            for name, parameter in parameters.items():
                gradient = parameter.grad().copy()
                sums[name] = sums[name] + gradient if name in sums else gradient
        for name, parameter in parameters.items():
            updater(name, sums[name], parameter.data())
    return numbers(network)


def train_with_store(store: mx.kvstore.KVStore, name: str, case: Case) -> Arrays:
    """A worker's part, by the store's own calls; keys are prefixed with the case's name."""
    network = make_network(case.dtype)
    parameters = {f"{name}/{key}": value for key, value in network.collect_params().items()}
    optimizer = case.make_optimizer(store.num_workers)
    multiplied(optimizer, case, list(parameters))
    if case.on_servers:
        store.set_optimizer(optimizer)
    updater = mx.optimizer.get_updater(optimizer)
    for key, parameter in parameters.items():
        store.broadcast(key, parameter.data(), out=parameter.data())
    for step in range(STEPS):
        backward(network, step, store.rank, case.dtype)
        for priority, (key, parameter) in enumerate(parameters.items()):
            out = parameter.data() if case.on_servers else parameter.grad()
            store.pushpull(key, parameter.grad(), out=out, priority=-priority)
        if not case.on_servers:
            for key, parameter in parameters.items():
                updater(key, parameter.grad(), parameter.data())
    return numbers(network)
