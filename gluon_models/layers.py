"""What several networks are made of."""

from __future__ import annotations

from types import ModuleType

from mxnet.gluon import HybridBlock, nn
from mxnet.initializer import Initializer, Xavier
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol


def chain(*blocks: HybridBlock) -> nn.HybridSequential:
    """The blocks one after the other, as one block."""
    sequence = nn.HybridSequential()
    sequence.add(*blocks)
    return sequence


def convolution(
    channels: int,
    kernel_size: int | tuple[int, int],
    strides: int = 1,
    padding: int | tuple[int, int] = 0,
) -> nn.HybridSequential:
    """A convolution, batch normalisation and ReLU."""
    return chain(
        nn.Conv2D(channels, kernel_size, strides, padding, use_bias=False),
        nn.BatchNorm(epsilon=0.001),
        nn.Activation("relu"),
    )


class ResponseNorm(HybridBlock):
    """x / (1 + alpha / channels * the sum of the squares of neighbouring channels) ** 0.75.

    Krizhevsky, Sutskever and Hinton 2012, section 3.3, with the factors of Caffe. Any shape (batch,
    channels, height, width).

    Parameters
    ----------
    channels
        How many neighbours are summed over, the one in their middle included.
    alpha
        Weight of their mean square.
    """

    def __init__(self, channels: int, alpha: float) -> None:
        super().__init__()
        self._channels, self._alpha = channels, alpha

    def hybrid_forward(self, F: ModuleType, x: NDArray | Symbol) -> NDArray | Symbol:
        # MXNet divides alpha by nsize.
        return F.LRN(x, nsize=self._channels, alpha=self._alpha, beta=0.75, knorm=1)


def caffe_xavier() -> Initializer:
    """What Caffe calls xavier: uniform, with a variance of one over the fan-in."""
    return Xavier(factor_type="in", magnitude=3)


def learn_as_caffe(net: HybridBlock) -> None:
    """Has biases learn twice as fast as weights and without weight decay, as Caffe's models say."""
    biases = net.collect_params(".*bias")
    biases.setattr("lr_mult", 2.0)
    biases.setattr("wd_mult", 0.0)
