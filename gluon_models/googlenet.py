"""GoogLeNet, the 22-layer Inception network (Szegedy et al. 2014).

"Going Deeper with Convolutions", https://arxiv.org/abs/1409.4842. Table 1 gives the layer sizes,
figure 2(b) the Inception module and figure 3 the whole network with its auxiliary heads.

Like gluoncv's `googlenet`, whose parameters fit this network one by one, it departs from the paper:

- Every convolution is followed by batch normalisation (Ioffe and Szegedy 2015,
  https://arxiv.org/abs/1502.03167) and has no bias. The paper's response normalisation is left out.
- The branch that the paper calls 5x5 has 3x3 kernels. With 5x5 kernels the network would have
  7.0 million parameters instead of 6.6 million.
- The pooling before module 5a is 2x2, not 3x3.

It averages over whatever area is left at the end, where gluoncv insists on 7x7; for images of
224x224 that is the same. `googlenet_caffe.py` makes the paper's out of the same modules.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Callable

from gluon_models import layers
from gluon_models.layers import chain
from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol


@dataclass(frozen=True)
class Style:
    """In what networks differ that have the numbers of table 1.

    Parameters
    ----------
    convolution
        Of channels, kernel size and strides: a convolution, what belongs to it and ReLU.
    dense
        Of units and an activation: a dense layer.
    fives
        Kernel size of the branch that the paper calls 5x5.
    last_pooling
        What halves height and width before module 5a.
    normalise
        Layers that follow the first pooling, and come before the second.
    """

    convolution: Callable[..., HybridBlock]
    dense: Callable[..., HybridBlock]
    fives: int
    last_pooling: Callable[[], HybridBlock]
    normalise: Callable[[], list[HybridBlock]]


def convolution(channels: int, kernel_size: int, strides: int = 1) -> nn.HybridSequential:
    """A convolution, batch normalisation and ReLU; without strides it keeps height and width."""
    return layers.convolution(channels, kernel_size, strides, padding=kernel_size // 2)


def pooling() -> nn.MaxPool2D:
    """3x3 pooling that halves height and width, rounded up."""
    return nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True)


BATCH_NORMALISED = Style(
    convolution,
    nn.Dense,
    fives=3,
    last_pooling=partial(nn.MaxPool2D, pool_size=2, strides=2),
    normalise=list,
)


class Inception(HybridBlock):
    """Four branches side by side, their channels concatenated (figure 2b of the paper).

    The arguments after the style are the columns of table 1 from "#1x1" to "pool proj", in its
    order: numbers of output channels. (batch, any, h, w) becomes
    (batch, ones + threes + fives + pool_projection, h, w).
    """

    def __init__(
        self,
        style: Style,
        ones: int,
        threes_reduce: int,
        threes: int,
        fives_reduce: int,
        fives: int,
        pool_projection: int,
    ) -> None:
        super().__init__()
        make = style.convolution
        with self.name_scope():
            self.ones = make(ones, 1)
            self.threes = chain(make(threes_reduce, 1), make(threes, 3))
            self.fives = chain(make(fives_reduce, 1), make(fives, style.fives))
            self.pool = chain(
                nn.MaxPool2D(pool_size=3, strides=1, padding=1), make(pool_projection, 1)
            )

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return F.concat(self.ones(x), self.threes(x), self.fives(x), self.pool(x), dim=1)


def auxiliary_head(style: Style, classes: int) -> nn.HybridSequential:
    """A classifier on features from the middle of the network (end of the paper's section 5)."""
    return chain(
        nn.AvgPool2D(pool_size=5, strides=3),
        style.convolution(128, 1),
        style.dense(1024, activation="relu"),
        nn.Dropout(0.7),
        style.dense(classes),
    )


class GoogLeNet(HybridBlock):
    """GoogLeNet: 6.6 million parameters for 1000 classes, 13 million with the auxiliary heads.

    Images have shape (batch, channels, height, width), 224x224 in the paper, at least 32x32 and
    with `aux_logits` at least 80x80.

    Parameters
    ----------
    classes
        Number of outputs.
    aux_logits
        Return (logits, aux2, aux1), three arrays of shape (batch, classes), instead of
        the logits alone. `aux1` is computed from the output of module 4a and `aux2` from that
        of module 4d. They are for training only: the paper adds their losses with a weight
        of 0.3 each.
    dropout
        The part of the features dropped before the last layer in training; 0.4 in
        table 1.
    """

    style = BATCH_NORMALISED

    def __init__(self, classes: int = 1000, aux_logits: bool = False, dropout: float = 0.4) -> None:
        super().__init__()
        self.aux_logits = aux_logits
        style = self.style
        with self.name_scope():
            self.up_to_4a = chain(
                style.convolution(64, 7, strides=2),
                pooling(),
                *style.normalise(),
                style.convolution(64, 1),
                style.convolution(192, 3),
                *style.normalise(),
                pooling(),
                Inception(style, 64, 96, 128, 16, 32, 32),  # 3a
                Inception(style, 128, 128, 192, 32, 96, 64),  # 3b
                pooling(),
                Inception(style, 192, 96, 208, 16, 48, 64),  # 4a
            )
            self.up_to_4d = chain(
                Inception(style, 160, 112, 224, 24, 64, 64),  # 4b
                Inception(style, 128, 128, 256, 24, 64, 64),  # 4c
                Inception(style, 112, 144, 288, 32, 64, 64),  # 4d
            )
            self.up_to_5b = chain(
                Inception(style, 256, 160, 320, 32, 128, 128),  # 4e
                style.last_pooling(),
                Inception(style, 256, 160, 320, 32, 128, 128),  # 5a
                Inception(style, 384, 192, 384, 48, 128, 128),  # 5b
            )
            if aux_logits:
                self.aux1 = auxiliary_head(style, classes)
                self.aux2 = auxiliary_head(style, classes)
            self.head = chain(nn.GlobalAvgPool2D(), nn.Dropout(dropout), style.dense(classes))

    def hybrid_forward(
        self, F: ModuleType, x: NDArray | Symbol
    ) -> NDArray | Symbol | tuple[NDArray | Symbol, ...]:
        features_4a = self.up_to_4a(x)
        features_4d = self.up_to_4d(features_4a)
        features_5b = self.up_to_5b(features_4d)
        if not self.aux_logits:
            return self.head(features_5b)
        # After the trunk: the rest of the network must not wait for the heads' wide dense layers.
        aux1 = self.aux1(features_4a)
        aux2 = self.aux2(features_4d)
        return self.head(features_5b), aux2, aux1
