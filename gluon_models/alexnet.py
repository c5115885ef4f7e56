"""AlexNet, in the version for one GPU (Krizhevsky 2014), with batch normalisation.

"One weird trick for parallelizing convolutional neural networks",
https://arxiv.org/abs/1404.5997; the network is that of "ImageNet Classification with Deep
Convolutional Neural Networks" (Krizhevsky, Sutskever and Hinton 2012) without its division over two
GPUs and without response normalisation. `alexnet_caffe.py` has the one that the TernGrad paper
trains.

Without batch normalisation, the parameters are those of gluoncv's `alexnet`.
"""

from __future__ import annotations

from types import ModuleType

from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol


class AlexNet(HybridBlock):
    """AlexNet: 61.1 million parameters for 1000 classes and images of 224x224.

    Images have shape (batch, channels, height, width), at least 63x63; with smaller ones than
    224x224 the first dense layer shrinks in proportion.

    Parameters
    ----------
    classes
        Number of outputs.
    batch_norm
        Normalise after every convolution.
    dropout
        The part of the features dropped after each hidden dense layer in training.
    """

    def __init__(self, classes: int = 1000, batch_norm: bool = True, dropout: float = 0.5) -> None:
        super().__init__()
        self._batch_norm = batch_norm
        with self.name_scope():
            self.features = nn.HybridSequential()
            self._add(64, kernel_size=11, strides=4, padding=2)
            self.features.add(nn.MaxPool2D(pool_size=3, strides=2))
            self._add(192, kernel_size=5, padding=2)
            self.features.add(nn.MaxPool2D(pool_size=3, strides=2))
            self._add(384, kernel_size=3, padding=1)
            self._add(256, kernel_size=3, padding=1)
            self._add(256, kernel_size=3, padding=1)
            self.features.add(nn.MaxPool2D(pool_size=3, strides=2))
            self.head = nn.HybridSequential()
            for _ in range(2):
                self.head.add(nn.Dense(4096, activation="relu"), nn.Dropout(dropout))
            self.head.add(nn.Dense(classes))

    def _add(self, channels: int, kernel_size: int, strides: int = 1, padding: int = 0) -> None:
        """A convolution, batch normalisation if wanted, and ReLU."""
        self.features.add(nn.Conv2D(channels, kernel_size, strides, padding))
        if self._batch_norm:
            self.features.add(nn.BatchNorm())
        self.features.add(nn.Activation("relu"))

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return self.head(self.features(x))
