"""GoogLeNet as Caffe's model zoo trains it, `bvlc_googlenet`: the network of the Slim-DP paper.

Section 4.1 of that paper names the zoo's hyperparameters, and 13 million parameters. It is the
network of Szegedy et al. 2014 (https://arxiv.org/abs/1409.4842, table 1): 5x5 kernels, response
normalisation and biases, and no batch normalisation. `googlenet.py` has what is trained today, and
the modules.

As in the zoo, weights begin uniform with a variance of one over the fan-in, and biases at 0.2 but
for those before a softmax. Biases learn twice as fast as weights, and without weight decay.
"""

from __future__ import annotations

from gluon_models.googlenet import GoogLeNet, Style, pooling
from gluon_models.layers import ResponseNorm, caffe_xavier, learn_as_caffe
from mxnet.gluon import HybridBlock, nn
from mxnet.initializer import Constant


def convolution(channels: int, kernel_size: int, strides: int = 1) -> nn.Conv2D:
    """A convolution and ReLU; without strides it keeps height and width."""
    return nn.Conv2D(
        channels,
        kernel_size,
        strides,
        padding=kernel_size // 2,
        activation="relu",
        weight_initializer=caffe_xavier(),
        bias_initializer=Constant(0.2),
    )


def dense(units: int, activation: str | None = None) -> nn.Dense:
    """A dense layer; one without an activation is for a softmax."""
    return nn.Dense(
        units,
        activation,
        weight_initializer=caffe_xavier(),
        bias_initializer=Constant(0.2 if activation else 0.0),
    )


def normalise() -> list[HybridBlock]:
    """The zoo's response normalisation."""
    return [ResponseNorm(channels=5, alpha=1e-4)]


class GoogLeNetCaffe(GoogLeNet):
    """Caffe's GoogLeNet: 7.0 million parameters for 1000 classes, 13.4 million with the heads.

    Images are at least 47x47, or 80x80 with the heads; the rest is as with `GoogLeNet`. The zoo
    trains with the auxiliary heads, whose losses weigh 0.3.
    """

    style = Style(convolution, dense, fives=5, last_pooling=pooling, normalise=normalise)

    def __init__(self, classes: int = 1000, aux_logits: bool = False, dropout: float = 0.4) -> None:
        super().__init__(classes, aux_logits, dropout)
        learn_as_caffe(self)
