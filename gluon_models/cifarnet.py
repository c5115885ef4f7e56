"""CifarNet, the small network of TensorFlow's CIFAR-10 tutorial.

The TernGrad paper trains it on CIFAR-10 (its table 1) and names Krizhevsky, Sutskever and Hinton
(2012) for it: convolutions with response normalisation, whose section 3.3 gives the formula. The
layers are the tutorial's: two 5x5 convolutions of 64 channels, each with 3x3 pooling and response
normalisation over 9 channels, then dense layers of 384 and 192.
"""

from __future__ import annotations

from types import ModuleType

from gluon_models.layers import ResponseNorm, chain
from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol


class CifarNet(HybridBlock):
    """CifarNet: 1.07 million parameters for ten classes and images of 24x24.

    Images have shape (batch, channels, height, width): in the paper 24x24, cropped out of 32x32; at
    least 6x6.

    Parameters
    ----------
    classes
        Number of outputs.
    """

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        with self.name_scope():
            self.features = chain(
                nn.Conv2D(64, kernel_size=5, padding=2, activation="relu"),
                nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True),
                ResponseNorm(channels=9, alpha=0.001),
                nn.Conv2D(64, kernel_size=5, padding=2, activation="relu"),
                ResponseNorm(channels=9, alpha=0.001),
                nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True),
            )
            self.head = chain(
                nn.Dense(384, activation="relu"),
                nn.Dense(192, activation="relu"),
                nn.Dense(classes),
            )

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return self.head(self.features(x))
