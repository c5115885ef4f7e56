"""Network in Network, which the EC-DNN paper trains on CIFAR-10 and CIFAR-100 (section 6.1).

Lin, Chen and Yan, "Network in network", ICLR 2014: after each spatial convolution two of 1x1, a
small dense network at every place, and an average over the last maps instead of dense layers. The
layers are those of the authors' model for CIFAR, but for the ReLU after the last: where it gives 0
for all classes, nothing trains any more.
"""

from __future__ import annotations

from types import ModuleType

from gluon_models.layers import chain
from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol


class NIN(HybridBlock):
    """Network in Network: 0.97 million parameters for ten classes and images of 3x32x32.

    Images have shape (batch, channels, height, width), any height and width of at least 6; the
    paper's are 32x32. `NIN.for_digits` is a small one for images of 8x8.

    Parameters
    ----------
    classes
        Number of outputs.
    widths
        Channels of the nine convolutions but the last, which has one for each class.
    kernels
        Height and width of the three spatial convolutions.
    dropout
        After each pooling.
    batch_norm
        Batch normalisation after each convolution but the last, which is not in the
        paper and without which so deep a network takes long to begin to learn.
    """

    def __init__(
        self,
        classes: int = 10,
        widths: tuple[int, ...] = (192, 160, 96, 192, 192, 192, 192, 192),
        kernels: tuple[int, int, int] = (5, 5, 3),
        dropout: float = 0.5,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        if len(widths) != 8 or len(kernels) != 3:
            raise ValueError(
                f"widths are {len(widths)} and kernels {len(kernels)}; they must be 8 and 3"
            )
        with self.name_scope():
            self.features = chain(
                _block(widths[0:3], kernels[0], batch_norm),
                nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True),
                nn.Dropout(dropout),
                _block(widths[3:6], kernels[1], batch_norm),
                nn.AvgPool2D(pool_size=3, strides=2, ceil_mode=True, count_include_pad=False),
                nn.Dropout(dropout),
                _block(widths[6:8], kernels[2], batch_norm),
            )
            self.head = chain(nn.Conv2D(classes, 1), nn.GlobalAvgPool2D(), nn.Flatten())

    @classmethod
    def for_digits(
        cls, classes: int = 10, dropout: float = 0.0, batch_norm: bool = True
    ) -> NIN:
        """For images of 8x8: 18 thousand parameters with one input channel and ten classes."""
        return cls(classes, (16, 16, 16, 32, 32, 32, 32, 32), (3, 3, 3), dropout, batch_norm)

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return self.head(self.features(x))


def _block(widths: tuple[int, ...], kernel: int, batch_norm: bool) -> nn.HybridSequential:
    """A spatial convolution and others of 1x1, of these widths."""
    layers: list[HybridBlock] = []
    for width, size in zip(widths, (kernel, 1, 1)):
        layers.append(nn.Conv2D(width, size, padding=size // 2, use_bias=not batch_norm))
        if batch_norm:
            layers.append(nn.BatchNorm())
        layers.append(nn.Activation("relu"))
    return chain(*layers)
