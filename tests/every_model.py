"""One training step of every model, and what it has to give."""

from __future__ import annotations

import itertools
from typing import Any, Callable, NamedTuple

import mxnet as mx
import numpy as np
from gluon_models import get_model
from gluon_models.sockeye import Sockeye, configuration
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
IN_PROCESS = ["local", "device", "p3", "dist_sync_p3"]
IN_CLUSTER = ["dist_sync", "p3", "dist_sync_p3"]


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


WAYS = [Way(*way) for way in itertools.product((True, False), (1, 2))]


def selected(store: int, way: Way) -> list[str]:
    """LeNet, and every fourth other model, so that over four stores each is trained in each way."""
    return [model for number, model in enumerate(MODELS)
            if model == "lenet" or (number + store) % len(WAYS) == WAYS.index(way)]


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


def check(store: str, way: Way, models: list[str]) -> None:
    """A step of SGD moves every parameter of all these models against the devices' gradients.

    One trainer has them all: MXNet makes only one distributed store of its own in a process.
    """
    mx.random.seed(0)
    devices = [mx.cpu(i) for i in range(way.devices)]
    trained: dict[str, gluon.Parameter] = {}
    losses = []
    for net, loss in map(make, models):
        net.initialize(mx.init.Xavier(), ctx=devices)
        net.hybridize(way.hybridize)
        with autograd.record():
            losses += [loss(device) for device in devices]
        for name, parameter in net.collect_params().items():
            if parameter.grad_req != "null":
                trained[name] = parameter
    kv = mx.kv.create(store)
    trainer = gluon.Trainer(trained, "sgd", {"learning_rate": RATE}, kvstore=kv)
    autograd.backward(losses)
    expected = {}
    for name, parameter in trained.items():
        gradient = sum(gradient.asnumpy() for gradient in parameter.list_grad())
        assert gradient.any() or not name.endswith("weight"), name
        step = RATE / (BATCH * way.devices)
        expected[name] = parameter.list_data()[0].asnumpy() - step * gradient
    trainer.step(BATCH * way.devices)
    for name, parameter in trained.items():
        for data in parameter.list_data():
            np.testing.assert_allclose(data.asnumpy(), expected[name], 1e-5, 1e-6, err_msg=name)
    if hasattr(kv, "close"):
        kv.close()
