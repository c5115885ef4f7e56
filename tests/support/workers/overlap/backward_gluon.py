"""Gradients are handed over before they exist, and travel while earlier layers are being computed.

Two gates in the network make the order certain, since the backward pass stops at each: the last one
opens once step() has returned, the first once the last layer's new parameters have arrived.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any, Callable

import kvstore_ext  # noqa: F401
import mxnet as mx
from mxnet import autograd, gluon

from tests.support.happened import Happenings
from tests.support.workers.overlap.watched import (
    IMAGES,
    LABELS,
    blocks_of,
    parameters_of,
    thin_resnet50,
)

LIMIT = 60  # seconds that a gate stays closed
ROUNDS = 8  # five iterations teach the order, or some more where threads begin late


class Gate(mx.operator.CustomOp):
    """The identity; its gradient passes once a function has returned."""

    def __init__(self, wait: Callable[[], None]) -> None:
        super().__init__()
        self._wait = wait

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.assign(out_data[0], req[0], in_data[0])

    def backward(
        self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any
    ) -> None:
        self._wait()
        self.assign(in_grad[0], req[0], out_grad[0])


def register_gate(name: str, wait: Callable[[], None]) -> None:
    @mx.operator.register(name)
    class Properties(mx.operator.CustomOpProp):
        def create_operator(self, context: Any, shapes: Any, dtypes: Any) -> Gate:
            return Gate(wait)


class Gated(gluon.HybridBlock):
    """A thin ResNet-50 with a gate after its first layers and one at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.net = thin_resnet50()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        first, *others = blocks_of(self.net)
        x = F.Custom(first(x), op_type="until_last_layer_has_arrived")
        for block in others:
            x = block(x)
        return F.Custom(x, op_type="until_step_has_returned")


def until_step_has_returned() -> None:
    if not step_returned.wait(LIMIT):
        raise TimeoutError("trainer.step() waits for the gradients")


def until_last_layer_has_arrived() -> None:
    for parameter in last_layer:
        parameter.data().wait_to_read()


step_returned = threading.Event()
register_gate("until_step_has_returned", until_step_has_returned)
register_gate("until_last_layer_has_arrived", until_last_layer_has_arrived)
store = mx.kv.create("p3")
happenings = Happenings(store)
net = Gated()
net.initialize(mx.init.Xavier())
net.hybridize(static_alloc="static" in sys.argv, static_shape="static" in sys.argv)
loss = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01}, kvstore=store)
last_layer = parameters_of(net)[-2:]  # weight and bias

events, learned = [], []
for _ in range(ROUNDS):
    order = store.learned_order()
    step_returned.clear()
    with autograd.record():
        error = loss(net(IMAGES), LABELS)
    error.backward()
    trainer.step(len(IMAGES))
    step_returned.set()
    mx.nd.waitall()
    happened = happenings.take()
    if store.learned_order() == order:  # it held all the time
        events, learned = happened, order

names = [parameter.name for parameter in trainer._params]
found = {
    "needed": [
        parameter.name for block in blocks_of(net.net) for parameter in parameters_of(block)
    ],
    "learned": [names[key] for key in learned],
    "events": [(each.what, names[int(each.key.split(" ")[0])], each.priority) for each in events],
}
print(json.dumps(found))
