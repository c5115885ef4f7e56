"""VGG-11, 13, 16 and 19 (Simonyan and Zisserman 2014).

"Very Deep Convolutional Networks for Large-Scale Image Recognition",
https://arxiv.org/abs/1409.1556. Table 1 gives the layer sizes; 11, 13, 16 and 19 are its columns
A, B, D and E. The parameters are those of gluoncv's `vgg11` to `vgg19`, and with `batch_norm` those
of its `vgg11_bn` to `vgg19_bn`.

Nine tenths of VGG-16's parameters are in its three dense layers: their gradients are ready first,
and the next forward pass needs them last.
"""

from __future__ import annotations

from types import ModuleType

from mxnet.gluon import HybridBlock, nn
from mxnet.initializer import Normal, Xavier
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol

CHANNELS = (64, 128, 256, 512, 512)
CONVOLUTIONS_PER_STAGE = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}


class VGG(HybridBlock):
    """VGG: 133 (depth 11 and 13), 138 (16) and 144 (19) million parameters for 1000 classes.

    That is for images of 224x224, as in the paper. Images have shape (batch, channels, height,
    width), at least 32x32; with smaller ones the first dense layer shrinks in proportion.

    Convolutions start from Gaussian weights that keep the gradients' variance (He et al. 2015,
    https://arxiv.org/abs/1502.01852, equation 14), dense layers from a standard deviation of 0.01
    (section 3.1 of the paper), whatever `initialize` is given.

    Parameters
    ----------
    depth
        Number of convolutions and dense layers: 11, 13, 16 or 19.
    classes
        Number of outputs.
    batch_norm
        Normalise after every convolution. The paper knew no batch normalisation; it
        makes training from scratch much easier.
    dropout
        The part of the features dropped after each hidden dense layer in training; 0.5 in
        section 3.1.

    Raises
    ------
    ValueError
        No column of table 1 has this depth.
    """

    def __init__(
        self, depth: int, classes: int = 1000, batch_norm: bool = False, dropout: float = 0.5
    ) -> None:
        if depth not in CONVOLUTIONS_PER_STAGE:
            allowed = ", ".join(map(str, CONVOLUTIONS_PER_STAGE))
            raise ValueError(f"depth is {depth!r}; the depths allowed are {allowed}")
        super().__init__()
        with self.name_scope():
            self.features = nn.HybridSequential()
            for channels, convolutions in zip(CHANNELS, CONVOLUTIONS_PER_STAGE[depth]):
                self.features.add(stage(channels, convolutions, batch_norm))
            self.head = nn.HybridSequential()
            self.head.add(
                nn.Dense(4096, activation="relu", weight_initializer=Normal(0.01)),
                nn.Dropout(dropout),
                nn.Dense(4096, activation="relu", weight_initializer=Normal(0.01)),
                nn.Dropout(dropout),
                nn.Dense(classes, weight_initializer=Normal(0.01)),
            )

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        return self.head(self.features(x))


def stage(channels: int, convolutions: int, batch_norm: bool) -> nn.HybridSequential:
    """3x3 convolutions of one width, then 2x2 max pooling.

    (batch, any, h, w) becomes (batch, channels, h // 2, w // 2).
    """
    sequence = nn.HybridSequential()
    for _ in range(convolutions):
        he_normal = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
        sequence.add(nn.Conv2D(channels, kernel_size=3, padding=1, weight_initializer=he_normal))
        if batch_norm:
            sequence.add(nn.BatchNorm())
        sequence.add(nn.Activation("relu"))
    sequence.add(nn.MaxPool2D(pool_size=2, strides=2))
    return sequence
