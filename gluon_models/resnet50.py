"""ResNet-50, version 1 (He et al. 2015).

"Deep Residual Learning for Image Recognition", https://arxiv.org/abs/1512.03385. Column "50-layer"
of table 1 gives the layer sizes, figure 5 (right) the bottleneck block.

The parameters are those of gluoncv's `resnet50_v1`. Like it, and unlike most other versions, the
1x1 convolutions of a block have a bias, although the batch normalisation that follows cancels it.
A block that halves the image does so in its first 1x1 convolution, as the paper's do; "version 1b"
moves the stride to the 3x3 convolution.
"""

from __future__ import annotations

from types import ModuleType

from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol


class Bottleneck(HybridBlock):
    """1x1, 3x3 and 1x1 convolutions, added to their own input (figure 5, right).

    (batch, any, h, w) becomes (batch, channels, h / strides, w / strides). The first two
    convolutions have a quarter of `channels`.

    Parameters
    ----------
    channels
        Number of output channels.
    strides
        The step of the first convolution.
    project
        Pass the input through a 1x1 convolution before the sum, the paper's option B;
        needed wherever the block changes the shape.
    """

    def __init__(self, channels: int, strides: int, project: bool) -> None:
        super().__init__()
        with self.name_scope():
            self.residual = nn.HybridSequential()
            self.residual.add(
                nn.Conv2D(channels // 4, kernel_size=1, strides=strides),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.Conv2D(channels // 4, kernel_size=3, padding=1, use_bias=False),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.Conv2D(channels, kernel_size=1),
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


def stage(blocks: int, channels: int, strides: int) -> nn.HybridSequential:
    """Bottleneck blocks of one width; the first changes the shape, the others keep it."""
    sequence = nn.HybridSequential()
    sequence.add(Bottleneck(channels, strides, project=True))
    for _ in range(blocks - 1):
        sequence.add(Bottleneck(channels, strides=1, project=False))
    return sequence


class ResNet50(HybridBlock):
    """ResNet-50: 25.6 million parameters for 1000 classes.

    Images have shape (batch, channels, height, width), 224x224 in the paper, of any size.
    The attributes are named as the rows of table 1.

    Parameters
    ----------
    classes
        Number of outputs.
    """

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        with self.name_scope():
            self.conv1 = nn.HybridSequential()
            self.conv1.add(
                nn.Conv2D(64, kernel_size=7, strides=2, padding=3, use_bias=False),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.MaxPool2D(pool_size=3, strides=2, padding=1),
            )
            self.conv2_x = stage(blocks=3, channels=256, strides=1)
            self.conv3_x = stage(blocks=4, channels=512, strides=2)
            self.conv4_x = stage(blocks=6, channels=1024, strides=2)
            self.conv5_x = stage(blocks=3, channels=2048, strides=2)
            self.head = nn.HybridSequential()
            self.head.add(nn.GlobalAvgPool2D(), nn.Dense(classes))

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        x = self.conv1(x)
        x = self.conv2_x(x)
        x = self.conv3_x(x)
        x = self.conv4_x(x)
        x = self.conv5_x(x)
        return self.head(x)
