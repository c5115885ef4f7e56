"""A small network that trains in each way that MXNet has, for the layers of its trace."""
from __future__ import annotations

import threading
from typing import Any

import mxnet as mx
from mxnet import autograd, gluon

IMAGES, LABELS = mx.nd.ones((4, 6)), mx.nd.zeros((4,))
LIMIT = 60  # seconds

released = threading.Event()


class Held(mx.operator.CustomOp):
    """Gives on what comes once that is released."""

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        released.wait(LIMIT)
        self.assign(out_data[0], req[0], in_data[0])


@mx.operator.register("held")
class HeldProperties(mx.operator.CustomOpProp):
    """Makes one."""

    def create_operator(self, context: Any, shapes: Any, dtypes: Any) -> Held:
        return Held()


def hold(weight: mx.nd.NDArray) -> None:
    """Has a weight become what it is, but only once that is released."""
    released.clear()
    weight[:] = mx.nd.Custom(weight, op_type="held")


class Training:
    """A Gluon network with layers that have parameters, and layers that have none."""

    def __init__(self, **hybridized: bool) -> None:
        self.net = gluon.nn.HybridSequential(prefix="")
        with self.net.name_scope():
            self.net.add(gluon.nn.Dense(5, activation="relu", prefix="first_"))
            self.net.add(gluon.nn.BatchNorm(prefix="normal_"))
            self.net.add(gluon.nn.Activation("tanh", prefix="bent_"))
            self.net.add(gluon.nn.Dense(3, prefix="last_"))
        self.net.initialize()
        self.loss = gluon.loss.SoftmaxCrossEntropyLoss(prefix="loss_")
        if hybridized:
            self.net.hybridize(**hybridized)
        self.step()  # after which parameters have their shapes

    @property
    def last(self) -> mx.nd.NDArray:
        """The last layer's weight."""
        return self.net[3].weight.data()

    def step(self) -> None:
        """Has the engine compute gradients."""
        with autograd.record():
            error = self.loss(self.net(IMAGES), LABELS)
        error.backward()


class SymbolicTraining:
    """The same with Module."""

    def __init__(self) -> None:
        out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=5, name="first")
        out = mx.sym.Activation(out, act_type="relu", name="relu")
        out = mx.sym.BatchNorm(out, name="normal")
        out = mx.sym.Activation(out, act_type="tanh", name="bent")
        out = mx.sym.FullyConnected(out, num_hidden=3, name="last")
        out = mx.sym.SoftmaxOutput(out, name="loss")
        self.module = mx.mod.Module(out, label_names=["loss_label"])
        self.module.bind([("data", IMAGES.shape)], [("loss_label", LABELS.shape)])
        self.module.init_params()

    @property
    def last(self) -> mx.nd.NDArray:
        """The last layer's weight."""
        return self.module._exec_group.execs[0].arg_dict["last_weight"]

    def step(self) -> None:
        """Has the engine compute gradients."""
        self.module.forward_backward(mx.io.DataBatch([IMAGES], [LABELS]))
