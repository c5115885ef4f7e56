"""A small LeNet for grey digits.

After LeNet-5 (LeCun, Bottou, Bengio and Haffner 1998, "Gradient-Based Learning Applied to Document
Recognition", figure 2): two 5x5 convolutions, each followed by 2x2 pooling, then dense layers. It
departs from the figure in what has since become usual, ReLU and max pooling, in more channels (32
and 64 instead of 6 and 16), in one hidden dense layer instead of two, and in padding the
convolutions, so that images of 8x8 keep something to pool.
"""

from __future__ import annotations

from types import ModuleType

from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol


class LeNet(HybridBlock):
    """Two convolutions and two dense layers: 86,000 parameters for ten digits of 8x8 pixels.

    Images have shape (batch, channels, height, width), at least 4x4, with values between 0 and 1.

    On scikit-learn's digits (1,797 images of 8x8, values up to 16, to be divided by 16) train with
    SGD, momentum 0.9, a learning rate of 0.05 and batches of 64 images over all workers together,
    from `mxnet.init.Xavier()`: 20 epochs give 98 % or better on a fifth of the images held back.

    Parameters
    ----------
    classes
        Number of outputs.
    """

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        with self.name_scope():
            self.features = nn.HybridSequential()
            self.features.add(
                nn.Conv2D(32, kernel_size=5, padding=2, activation="relu"),
                nn.MaxPool2D(pool_size=2, strides=2),
                nn.Conv2D(64, kernel_size=5, padding=2, activation="relu"),
                nn.MaxPool2D(pool_size=2, strides=2),
            )
            self.head = nn.HybridSequential()
            self.head.add(nn.Dense(128, activation="relu"), nn.Dense(classes))

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return self.head(self.features(x))
