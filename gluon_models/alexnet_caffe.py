"""AlexNet as Caffe's model zoo has it, `bvlc_alexnet`: the network of the TernGrad paper.

Krizhevsky, Sutskever and Hinton 2012, "ImageNet Classification with Deep Convolutional Neural
Networks": the second, fourth and fifth convolution see half of the channels each way, for two GPUs
that it was made for, and response normalisation comes before the first two poolings (in the zoo as
in the paper). `alexnet.py` has the later version for one GPU.

Section 4.2 of the TernGrad paper trains it with the zoo's hyperparameters and augmentation, and
adds batch normalisation of convolutions, before the ReLU as its published code has it. The last
layer holds 6.7 % of the parameters, as that section says.

As in the zoo, biases learn twice as fast as weights, and without weight decay.
"""

from __future__ import annotations

from types import ModuleType

from gluon_models.layers import ResponseNorm, learn_as_caffe
from mxnet.gluon import HybridBlock, nn
from mxnet.initializer import Constant, Normal
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol


class AlexNetCaffe(HybridBlock):
    """Caffe's AlexNet: 60,965,224 parameters for 1000 classes and images of 227x227.

    Images have shape (batch, channels, height, width), at least 55x55; with smaller ones than
    227x227 the first dense layer shrinks in proportion.

    Parameters
    ----------
    classes
        Number of outputs.
    batch_norm
        Normalise after every convolution; its biases then go, being without effect.
    dropout
        The part of the features dropped after each hidden dense layer in training; the
        TernGrad paper's table 2 has 0.5 for SGD and 0.2 for TernGrad.
    """

    def __init__(self, classes: int = 1000, batch_norm: bool = False, dropout: float = 0.5) -> None:
        super().__init__()
        self._batch_norm = batch_norm
        with self.name_scope():
            self.features = nn.HybridSequential()
            self._add(96, 11, strides=4)
            self._normalise_and_pool()
            self._add(256, 5, padding=2, groups=2, bias=0.1)
            self._normalise_and_pool()
            self._add(384, 3, padding=1)
            self._add(384, 3, padding=1, groups=2, bias=0.1)
            self._add(256, 3, padding=1, groups=2, bias=0.1)
            self.features.add(nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True))
            self.head = nn.HybridSequential()
            for _ in range(2):
                self.head.add(
                    nn.Dense(
                        4096,
                        activation="relu",
                        weight_initializer=Normal(0.005),
                        bias_initializer=Constant(0.1),
                    ),
                    nn.Dropout(dropout),
                )
            self.head.add(nn.Dense(classes, weight_initializer=Normal(0.01)))
        learn_as_caffe(self)

    def _add(
        self,
        channels: int,
        kernel_size: int,
        strides: int = 1,
        padding: int = 0,
        groups: int = 1,
        bias: float = 0.0,
    ) -> None:
        """A convolution whose bias begins at `bias`, batch normalisation if wanted, and ReLU."""
        self.features.add(
            nn.Conv2D(
                channels,
                kernel_size,
                strides,
                padding,
                groups=groups,
                use_bias=not self._batch_norm,
                weight_initializer=Normal(0.01),
                bias_initializer=Constant(bias),
            )
        )
        if self._batch_norm:
            self.features.add(nn.BatchNorm())
        self.features.add(nn.Activation("relu"))

    def _normalise_and_pool(self) -> None:
        self.features.add(
            ResponseNorm(channels=5, alpha=1e-4),
            nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True),
        )

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return self.head(self.features(x))
