"""One training step of every model, and what it has to give."""

from __future__ import annotations

import os
from typing import Any, Callable, NamedTuple

import mxnet as mx
import numpy as np
from gluon_models import get_model
from gluon_models.sockeye import Sockeye, configuration
from kvstore_ext.compression import TYPES
from mxnet import autograd, gluon, nd

RATE = 0.1
BATCH = 2  # examples of a device

# The smallest images that each network takes, or what a translation model has changed.
IMAGES = {
    "alexnet": 63,
    "cifar_resnet20_v1": 8,
    "cifarnet": 6,
    "googlenet": 32,
    "inceptionv3": 75,
    "lenet": 4,
    "resnet50_v1": 32,
    "vgg11": 32,
    "nin": 6,
}
TRANSLATORS: dict[str, dict[str, Any]] = {
    "sockeye": {},
    "sockeye-sparse": {"sparse_embedding": True},
    "sockeye-tied": {"tying": "all", "attention": "dot"},
}
MODELS = [*IMAGES, *TRANSLATORS]
# Of tens of millions of parameters, whose every step through a store costs.
LARGE = ["alexnet", "googlenet", "inceptionv3", "resnet50_v1", "vgg11"]
SMALL = [model for model in MODELS if model not in LARGE]
OURS = ["p3", *TYPES]  # each has a second name, dist_sync_NAME, for the same class
IN_PROCESS = ["local", "device", *OURS]
# slim_dp's only worker trains as without it.
QUANTIZING = [name for name in TYPES if name != "slim_dp"]
THRESHOLD = 1e-4  # of 2bit
# MXNet's own servers die of a dense weight with a row-sparse gradient, its 2bit refuses one, and
# slim_dp wants the parameters with every push, while Trainer pushes such a gradient alone.
REFUSED = {(store, "sockeye-sparse") for store in ("dist_sync", "2bit", "slim_dp")}


class Way(NamedTuple):
    """How to train; its words name it on a command line."""

    hybridize: bool
    devices: int

    @classmethod
    def parse(cls, text: str) -> Way:
        hybridize, devices = text.split(":")
        return cls(hybridize == "hybridized", int(devices))

    def __str__(self) -> str:
        return f"{'hybridized' if self.hybridize else 'plain'}:{self.devices}"


WAYS = [Way(True, 1), Way(False, 2), Way(True, 2), Way(False, 1)]


class Case(NamedTuple):
    """Models that train together in a way, each through all these stores."""

    way: Way
    models: list[str]
    stores: list[str]

    def __str__(self) -> str:
        return f"{self.way}-{self.models[0]}"


def every_case(stores: list[str]) -> list[Case]:
    """Every model in every way through every store."""
    return [Case(way, MODELS[start::4], stores) for way in WAYS for start in range(4)]


def selected_cases(stores: list[str]) -> list[Case]:
    """Every pair of a small model, a store, hybridized or not, and a number of devices, but not
    more. Of large ones half go through one of our stores, half through another."""
    small = [
        Case(WAYS[2 * (start % 2) + half], SMALL[start::4], stores[(start // 2 + half) % 2 :: 2])
        for start in range(4)
        for half in range(2)
    ]
    large = [Case(WAYS[0], LARGE[::2], ["p3"]), Case(WAYS[1], LARGE[1::2], ["terngrad"])]
    return [*small, *large]


def make(model: str) -> tuple[gluon.HybridBlock, Callable[[mx.Context], nd.NDArray]]:
    """A network, and a function that computes its loss on a device's own examples."""
    random = np.random.RandomState(0)
    if model in IMAGES:
        net = get_model(model, classes=3)
        shape = (BATCH, 3, IMAGES[model], IMAGES[model])
        net.infer_shape(nd.zeros(shape))
        arrays = [random.uniform(-1, 1, shape)]
        labels = random.randint(0, 3, BATCH)
    else:
        small = {"embedding": 8, "hidden": 8, **TRANSLATORS[model]}
        net = Sockeye(30, 30, configuration("small", **small))
        arrays = [random.randint(0, 30, (BATCH, 5)), np.array([5, 3]),
                  random.randint(0, 30, (BATCH, 4))]
        labels = random.randint(0, 30, (BATCH, 4))
    cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()

    def loss(device: mx.Context) -> nd.NDArray:
        scores = net(*(nd.array(array, ctx=device) for array in arrays))
        return cross_entropy(scores, nd.array(labels, ctx=device))

    return net, loss


def check(case: Case) -> None:
    """A step of SGD through each store moves every parameter of all models as it should.

    One trainer has them all: MXNet makes only one distributed store of its own in a process.
    """
    mx.random.seed(0)
    devices = [mx.cpu(i) for i in range(case.way.devices)]
    trained: dict[str, dict[str, gluon.Parameter]] = {}
    losses = []
    for model in case.models:
        net, loss = make(model)
        net.initialize(mx.init.Xavier(), ctx=devices)
        net.hybridize(case.way.hybridize)
        with autograd.record():
            losses += [loss(device) for device in devices]
        trained[model] = {name: parameter for name, parameter in net.collect_params().items()
                          if parameter.grad_req != "null"}
    autograd.backward(losses)
    parameters = {name: parameter for of in trained.values() for name, parameter in of.items()}
    expected = {name: Expected(name, parameter) for name, parameter in parameters.items()}
    for store in case.stores:
        names = [name for model in case.models if (store, model) not in REFUSED
                 for name in trained[model]]
        for name in names:
            expected[name].restore()
        train_step(store, {name: parameters[name] for name in names}, BATCH * case.way.devices)
        for name in names:
            expected[name].check(store)


class Expected:
    """What a step has to make of a parameter."""

    def __init__(self, name: str, parameter: gluon.Parameter) -> None:
        self._name, self._parameter = name, parameter
        self._before = [data.copy() for data in parameter.list_data()]
        self._gradients = [gradient.copy() for gradient in parameter.list_grad()]
        total = sum(sample(gradient) for gradient in self._gradients)
        assert total.any() or not name.endswith("weight"), name
        self._start = sample(self._before[0])
        self._step = RATE / (BATCH * len(self._gradients)) * total

    def restore(self) -> None:
        """Makes the parameter what it was before the first step."""
        parameter = self._parameter
        for data, before in zip(parameter.list_data(), self._before):
            before.copyto(data)
            data._fresh_grad = True  # or a trainer would ask for another backward pass
        for gradient, own in zip(parameter.list_grad(), self._gradients):
            own.copyto(gradient)  # where workers update, a step leaves the sum in it

    def check(self, store: str) -> None:
        what = f"{store}, {self._name}"
        first, *others = map(sample, self._parameter.list_data())
        assert all(np.array_equal(first, other) for other in others), what
        if store in QUANTIZING:
            self._check_direction(what, first)
            return
        difference = np.abs(self._start - self._step - first)
        assert (difference <= 1e-6 + 1e-5 * np.abs(first)).all(), f"{what}: {difference.max()}"

    def _check_direction(self, what: str, after: np.ndarray) -> None:
        """Compressed, no number moves with its gradient, and some move against it."""
        moved = after - self._start
        assert np.isfinite(moved).all(), what
        assert (moved * self._step <= 0).all(), what
        largest = np.abs(self._step).argmax()
        at, size = self._start[largest], self._step[largest]
        # onebit moves it by no more than a mean, 2bit only if it reaches the threshold.
        if at - size / 1000 != at and abs(size) > RATE * THRESHOLD:
            assert moved.any(), what


def sample(array: nd.NDArray) -> np.ndarray:
    """The numbers of an array; every 13th of a large one; no width has that divisor."""
    flat = array.tostype("default").reshape((-1,))
    return (flat if flat.size < 100_000 else flat[::13]).asnumpy()


def train_step(store: str, trained: dict[str, gluon.Parameter], examples: int) -> None:
    kv = mx.kv.create(store)
    if store == "2bit":
        kv.set_gradient_compression({"type": "2bit", "threshold": THRESHOLD})
    trainer = gluon.Trainer(trained, "sgd", {"learning_rate": RATE}, kvstore=kv)
    trainer.step(examples)
    # A worker whose stores are all closed has left its job.
    if hasattr(kv, "close") and "DMLC_ROLE" not in os.environ:
        mx.nd.waitall()
        kv.close()
