"""QSGD: a few bits an element (csrc/codecs/qsgd.h)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .method import GradientCompression
from .options import choice, flag, number


@dataclass(frozen=True)
class QSGD(GradientCompression):
    """A few bits an element, drawn at random about the gradient (Alistarh et al., NeurIPS 2017).

    Each bucket is scaled by its norm, and each element rounded at random to a multiple of
    norm / (2^(bits - 1) - 1) so that the mean is right; a bit is the sign. The sum is rounded so
    again on its way back. 8 bits and buckets of 512 are Slim-DP's Quant-DP (section 4).
    """

    name: ClassVar[str] = "qsgd"
    encodes_parts: ClassVar[bool] = True

    bits: int = number(8, "bits an element, the sign included")
    bucket: int = number(512, "elements that share a norm, of 32 bits")
    norm: str = choice("l2", "what a bucket is scaled by; max varies less, l2 sends more zeros")
    seed: int = number(0, "of the random numbers; equal on all workers")
    error_feedback: bool = flag(
        False, "add what rounding left out to the next round, on workers and servers"
    )
