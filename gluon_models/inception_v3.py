"""InceptionV3 (Szegedy, Vanhoucke, Ioffe, Shlens and Wojna 2015).

"Rethinking the Inception Architecture for Computer Vision", https://arxiv.org/abs/1512.00567.
Table 1 gives the stages, figures 5 to 7 and 10 the modules. The widths inside the modules, which
the paper leaves out, are those of its authors' code, as gluoncv's `inceptionv3` has them; gluoncv's
parameters fit this network one by one.

It averages over whatever area is left at the end, where gluoncv takes 8x8; for images of 299x299
that is the same. Like gluoncv's it has no auxiliary head.
"""

from __future__ import annotations

from types import ModuleType

from gluon_models.layers import chain, convolution
from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol


class Branches(HybridBlock):
    """Branches that all see the same input, their channels concatenated in this order."""

    def __init__(self, *branches: HybridBlock) -> None:
        super().__init__()
        self.branches = branches
        for branch in branches:
            self.register_child(branch)

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return F.concat(*[branch(x) for branch in self.branches], dim=1)


def pooled(channels: int) -> nn.HybridSequential:
    """The mean of each 3x3 area, then a 1x1 convolution."""
    return chain(nn.AvgPool2D(pool_size=3, strides=1, padding=1), convolution(channels, 1))


def row(channels: int) -> nn.HybridSequential:
    """A 1x7 convolution, which keeps the shape."""
    return convolution(channels, (1, 7), padding=(0, 3))


def column(channels: int) -> nn.HybridSequential:
    """A 7x1 convolution, which keeps the shape."""
    return convolution(channels, (7, 1), padding=(3, 0))


def module_35(pool_channels: int) -> Branches:
    """Figure 5, with one 5x5 kernel left: (batch, 224 + pool_channels, h, w)."""
    return Branches(
        convolution(64, 1),
        chain(convolution(48, 1), convolution(64, 5, padding=2)),
        chain(convolution(64, 1), convolution(96, 3, padding=1), convolution(96, 3, padding=1)),
        pooled(pool_channels),
    )


def reduction_35() -> Branches:
    """Figure 10: half the height and width, 480 channels more than before."""
    return Branches(
        convolution(384, 3, strides=2),
        chain(convolution(64, 1), convolution(96, 3, padding=1), convolution(96, 3, strides=2)),
        nn.MaxPool2D(pool_size=3, strides=2),
    )


def module_17(channels: int) -> Branches:
    """Figure 6 with n = 7: (batch, 768, h, w); `channels` is the width inside the branches."""
    return Branches(
        convolution(192, 1),
        chain(convolution(channels, 1), row(channels), column(192)),
        chain(
            convolution(channels, 1), column(channels), row(channels), column(channels), row(192)
        ),
        pooled(192),
    )


def reduction_17() -> Branches:
    """As figure 10, with 7x7 kernels in one branch: 512 channels more than before."""
    return Branches(
        chain(convolution(192, 1), convolution(320, 3, strides=2)),
        chain(convolution(192, 1), row(192), column(192), convolution(192, 3, strides=2)),
        nn.MaxPool2D(pool_size=3, strides=2),
    )


def split(channels: int) -> Branches:
    """A 1x3 and a 3x1 convolution side by side: (batch, 2 * channels, h, w)."""
    return Branches(
        convolution(channels, (1, 3), padding=(0, 1)), convolution(channels, (3, 1), padding=(1, 0))
    )


def module_8() -> Branches:
    """Figure 7: (batch, 2048, h, w)."""
    return Branches(
        convolution(320, 1),
        chain(convolution(384, 1), split(384)),
        chain(convolution(448, 1), convolution(384, 3, padding=1), split(384)),
        pooled(192),
    )


class InceptionV3(HybridBlock):
    """InceptionV3: 23.8 million parameters for 1000 classes.

    Images have shape (batch, channels, height, width), 299x299 in the paper, at least 75x75.
    The attributes are named after the height of what they work on in the paper.

    Parameters
    ----------
    classes
        Number of outputs.
    dropout
        The part of the features dropped before the last layer in training.
    """

    def __init__(self, classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        with self.name_scope():
            self.stem = chain(
                convolution(32, 3, strides=2),
                convolution(32, 3),
                convolution(64, 3, padding=1),
                nn.MaxPool2D(pool_size=3, strides=2),
                convolution(80, 1),
                convolution(192, 3),
                nn.MaxPool2D(pool_size=3, strides=2),
            )
            self.at_35 = chain(module_35(32), module_35(64), module_35(64), reduction_35())
            self.at_17 = chain(
                module_17(128), module_17(160), module_17(160), module_17(192), reduction_17()
            )
            self.at_8 = chain(module_8(), module_8())
            self.head = chain(nn.GlobalAvgPool2D(), nn.Dropout(dropout), nn.Dense(classes))

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return self.head(self.at_8(self.at_17(self.at_35(self.stem(x)))))
