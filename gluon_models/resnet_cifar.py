"""ResNets for images of 32x32, version 1 (He et al. 2015).

"Deep Residual Learning for Image Recognition", https://arxiv.org/abs/1512.03385, section 4.2. The
P3 paper trains the one of 110 layers (its section 5.5).

The parameters are those of gluoncv's `cifar_resnet110_v1` and the like. Like them, and unlike the
paper, it has no ReLU after the first convolution, and where a block changes the shape, its input
passes through a 1x1 convolution (the paper's option B) instead of being padded with zeros (A).
"""

from __future__ import annotations

from types import ModuleType

from gluon_models.layers import chain
from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol


class BasicBlock(HybridBlock):
    """Two 3x3 convolutions, added to their own input (figure 5, left).

    (batch, any, h, w) becomes (batch, channels, h / strides, w / strides).

    Parameters
    ----------
    channels
        Number of output channels.
    strides
        The step of the first convolution.
    project
        Pass the input through a 1x1 convolution before the sum; needed wherever the block
        changes the shape.
    """

    def __init__(self, channels: int, strides: int, project: bool) -> None:
        super().__init__()
        with self.name_scope():
            self.residual = chain(
                nn.Conv2D(channels, kernel_size=3, strides=strides, padding=1, use_bias=False),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.Conv2D(channels, kernel_size=3, padding=1, use_bias=False),
                nn.BatchNorm(),
            )
            self.shortcut = nn.HybridSequential()
            if project:
                self.shortcut.add(
                    nn.Conv2D(channels, kernel_size=1, strides=strides, use_bias=False),
                    nn.BatchNorm(),
                )

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return F.relu(self.residual(x) + self.shortcut(x))


class ResNetCifar(HybridBlock):
    """ResNet for small images: 1.7 million parameters for 110 layers and ten classes.

    Images have shape (batch, channels, height, width), 32x32 in the paper, of any size.

    Parameters
    ----------
    depth
        Number of layers with weights, without the projections: 6 * n + 2 for n blocks a
        stage; 20, 32, 44, 56 and 110 in the paper.
    classes
        Number of outputs.

    Raises
    ------
    ValueError
        `depth` is not 6 * n + 2 with n of at least 1.
    """

    def __init__(self, depth: int = 110, classes: int = 10) -> None:
        if depth < 8 or depth % 6 != 2:
            raise ValueError(f"depth is {depth!r}; the depths allowed are 6 * n + 2")
        super().__init__()
        with self.name_scope():
            self.stem = chain(
                nn.Conv2D(16, kernel_size=3, padding=1, use_bias=False), nn.BatchNorm()
            )
            self.stages = nn.HybridSequential()
            for channels, strides in ((16, 1), (32, 2), (64, 2)):
                self.stages.add(BasicBlock(channels, strides, project=strides > 1))
                for _ in range((depth - 2) // 6 - 1):
                    self.stages.add(BasicBlock(channels, strides=1, project=False))
            self.head = chain(nn.GlobalAvgPool2D(), nn.Dense(classes))

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return self.head(self.stages(self.stem(x)))
