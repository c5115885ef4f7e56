"""The networks that the examples and the benchmarks train, one readable file each.

    >>> from gluon_models import get_model
    >>> net = get_model('resnet50_v1', classes=10)

Every network of `get_model` is a `HybridBlock` that maps images of shape (batch, channels, height,
width), float32, to logits of shape (batch, classes); blocks are registered in the order in which
`forward` uses them. Shapes are deferred: a network takes its number of input channels, and its
dense layers their width, from the first batch. `sockeye.py` is another kind, which translates, with
`beam_search.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

from gluon_models.alexnet import AlexNet
from gluon_models.alexnet_caffe import AlexNetCaffe
from gluon_models.cifarnet import CifarNet
from gluon_models.googlenet import GoogLeNet
from gluon_models.googlenet_caffe import GoogLeNetCaffe
from gluon_models.inception_v3 import InceptionV3
from gluon_models.lenet import LeNet
from gluon_models.nin import NIN
from gluon_models.resnet50 import ResNet50
from gluon_models.resnet_cifar import ResNetCifar
from gluon_models.vgg import VGG
from mxnet.gluon import HybridBlock

__all__ = [
    "NIN",
    "VGG",
    "AlexNet",
    "AlexNetCaffe",
    "CifarNet",
    "GoogLeNet",
    "GoogLeNetCaffe",
    "InceptionV3",
    "LeNet",
    "ResNet50",
    "ResNetCifar",
    "get_model",
    "model_names",
]

_MODELS: dict[str, Callable[..., HybridBlock]] = {
    "alexnet": AlexNet,
    "alexnet_caffe": AlexNetCaffe,
    "cifar_resnet20_v1": partial(ResNetCifar, 20),
    "cifar_resnet56_v1": partial(ResNetCifar, 56),
    "cifar_resnet110_v1": partial(ResNetCifar, 110),
    "cifarnet": CifarNet,
    "googlenet": GoogLeNet,
    "googlenet_caffe": GoogLeNetCaffe,
    "inceptionv3": InceptionV3,
    "lenet": LeNet,
    "nin": NIN,
    "nin_digits": NIN.for_digits,
    "resnet50_v1": ResNet50,
    "vgg11": partial(VGG, depth=11),
    "vgg13": partial(VGG, depth=13),
    "vgg16": partial(VGG, depth=16),
    "vgg19": partial(VGG, depth=19),
}


def model_names() -> list[str]:
    """The names that `get_model` knows, sorted."""
    return sorted(_MODELS)


def get_model(name: str, classes: int = 1000, **options: Any) -> HybridBlock:
    """Make the network `name`, not yet initialised, with `classes` outputs.

    `options` go to the network's class: `aux_logits` and `dropout` for the GoogLeNets, `batch_norm`
    and `dropout` for VGG, the AlexNets and NIN, `dropout` for InceptionV3. Names of networks that
    gluoncv has too are gluoncv's.

    Raises
    ------
    ValueError
        No network has this name, or `classes` is not a positive integer.
    TypeError
        The network has no such option.
    """
    if name not in _MODELS:
        allowed = ", ".join(model_names())
        raise ValueError(f"unknown model {name!r}; the names allowed are {allowed}")
    if isinstance(classes, bool) or not isinstance(classes, int) or classes < 1:
        raise ValueError(f"classes is {classes!r}; it must be an integer of at least 1")
    return _MODELS[name](classes=classes, **options)
