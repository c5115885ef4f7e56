"""ResNet-50 whose blocks can be seen to run, on images small enough for a test."""

from __future__ import annotations

from typing import Any

import kvstore_ext  # noqa: F401
import mxnet as mx
from gluon_models.resnet50 import ResNet50, stage
from mxnet import gluon

CLASSES = 10
SHAPE = (2, 3, 32, 32)
IMAGES = mx.nd.random.uniform(shape=SHAPE)
LABELS = mx.nd.array([1, 2])


def thin_resnet50() -> ResNet50:
    """With all of its layers, whose bottlenecks have an eighth of the channels.

    For tests whose gates make the order certain: layers as quick as these may be ready in another
    one than that in which they began.
    """
    net = ResNet50(CLASSES)
    net.conv2_x = stage(blocks=3, channels=32, strides=1)
    net.conv3_x = stage(blocks=4, channels=64, strides=2)
    net.conv4_x = stage(blocks=6, channels=128, strides=2)
    net.conv5_x = stage(blocks=3, channels=256, strides=2)
    return net


def blocks_of(net: gluon.HybridBlock) -> list[gluon.HybridBlock]:
    """The first convolution, the 16 bottlenecks and the head, as the forward pass meets them."""
    stages = [net.conv2_x, net.conv3_x, net.conv4_x, net.conv5_x]
    return [net.conv1, *(block for stage in stages for block in stage), net.head]


def parameters_of(block: gluon.Block) -> list[gluon.Parameter]:
    """Those that are trained, in the order in which the forward pass needs them."""
    parameters = block.collect_params().values()
    return [parameter for parameter in parameters if parameter.grad_req != "null"]


class Watched(gluon.HybridBlock):
    """One that returns what each of its blocks does; the last is the network's output."""

    def __init__(self, net: ResNet50) -> None:
        super().__init__()
        self.net = net

    def hybrid_forward(self, F: Any, x: Any) -> list[Any]:
        outputs = []
        for block in blocks_of(self.net):
            x = block(x)
            outputs.append(x)
        return outputs
