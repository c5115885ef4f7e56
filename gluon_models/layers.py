"""What several networks are made of."""

from __future__ import annotations

from mxnet.gluon import HybridBlock, nn


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
