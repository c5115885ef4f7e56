"""ResNet-50 whose blocks can be seen to run, on images small enough for a test."""

from __future__ import annotations

from typing import Any

import gluon_models
import kvstore_ext  # noqa: F401
import mxnet as mx
from mxnet import gluon

CLASSES = 10
SHAPE = (2, 3, 32, 32)
IMAGES = mx.nd.random.uniform(shape=SHAPE)
LABELS = mx.nd.array([1, 2])


def blocks_of(net: gluon.HybridBlock) -> list[gluon.HybridBlock]:
    """The first convolution, the 16 bottlenecks and the head, as the forward pass meets them."""
    stages = [net.conv2_x, net.conv3_x, net.conv4_x, net.conv5_x]
    return [net.conv1, *(block for stage in stages for block in stage), net.head]


def parameters_of(block: gluon.Block) -> list[gluon.Parameter]:
    """Those that are trained, in the order in which the forward pass needs them."""
    parameters = block.collect_params().values()
    return [parameter for parameter in parameters if parameter.grad_req != "null"]


class Watched(gluon.HybridBlock):
    """ResNet-50 that returns what each of its blocks does; the last is the network's output."""

    def __init__(self) -> None:
        super().__init__()
        self.net = gluon_models.get_model("resnet50_v1", classes=CLASSES)

    def hybrid_forward(self, F: Any, x: Any) -> list[Any]:
        outputs = []
        for block in blocks_of(self.net):
            x = block(x)
            outputs.append(x)
        return outputs
