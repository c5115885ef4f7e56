"""Block after block, the forward pass runs although no later block's parameters have arrived.

Rank 0 trains as users do: backward(), step(), and the next forward pass. Rank 1 keeps the
gradients of each block back until rank 0 has seen the next output of the block before it. So the
job ends only if every block waits for its own parameters alone.
"""

from __future__ import annotations

import json
import sys

import kvstore_ext  # noqa: F401
import mxnet as mx
from gluon_models.resnet50 import ResNet50
from mxnet import autograd, gluon

from tests.support.workers.overlap.watched import (
    CLASSES,
    IMAGES,
    LABELS,
    Watched,
    blocks_of,
    parameters_of,
    thin_resnet50,
)

store = mx.kv.create("p3")
modes = sys.argv[1:]
if "thin" in modes:
    modes.remove("thin")
    net = Watched(thin_resnet50())
else:
    net = Watched(ResNet50(CLASSES))
net.initialize(mx.init.Xavier())
loss = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01}, kvstore=store)


def forward() -> tuple[list[mx.nd.NDArray], mx.nd.NDArray]:
    with autograd.record():
        outputs = net(IMAGES)
        return outputs, loss(outputs[-1], LABELS)


def step_block_by_block() -> None:
    """As trainer.step(), but after each block it waits for rank 0."""
    keys = {parameter.name: i for i, parameter in enumerate(trainer._params)}
    for block in blocks_of(net.net):
        for parameter in parameters_of(block):
            i = keys[parameter.name]
            store.pushpull(i, parameter.list_grad(), out=parameter.list_data(), priority=-i)
        store.barrier()


def train(mode: str) -> None:
    if mode != "plain":
        net.hybridize(static_alloc=mode == "static", static_shape=mode == "static")
    for _ in range(2):
        forward()[1].backward()
        trainer.step(len(IMAGES))
    mx.nd.waitall()
    forward()[1].backward()
    if store.rank == 1:
        return step_block_by_block()
    trainer.step(len(IMAGES))
    for number, output in enumerate(forward()[0]):
        output.wait_to_read()
        print(mode, "block", number, "has run", flush=True)
        store.barrier()
    return None


for mode in modes:
    train(mode)
    mx.nd.waitall()
names = [parameter.name for parameter in trainer._params]
needed = [parameter.name for parameter in parameters_of(net)]
print(json.dumps({"needed": needed, "learned": [names[key] for key in store.learned_order()]}))
