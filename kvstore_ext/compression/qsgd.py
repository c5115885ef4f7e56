"""QSGD: a few bits an element (csrc/codecs/qsgd.h)."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..errors import OptionError
from .method import GradientCompression
from .options import choice, flag, number


@dataclass(frozen=True)
class QSGD(GradientCompression):
    """A few bits an element, drawn at random about the gradient (Alistarh et al., NeurIPS 2017).

    Each bucket is scaled by its norm, and each element rounded at random to a multiple of
    norm / (2^(bits - 1) - 1) so that the mean is right; a bit is the sign. The sum is rounded so
    again on its way back. 8 bits and buckets of 512 are Slim-DP's Quant-DP (section 4).

    Error feedback is beyond the paper, and needs rounding to leave less than it is given. Rounding
    to one of s levels of a sign leaves 1 / (4 s^2) of an l2 norm's square for each element, at most
    and on average: with 4 s^2 elements or more what is carried over could grow from round to round,
    and does with 8 s^2 normally distributed ones. By max an element is left a share of 1 / s of
    the largest one at most, which says nothing where s is 1.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.error_feedback and self.bucket > _most_elements(self.bits, self.norm):
            enough = [f"bits {bits} or more" for bits in range(self.bits + 1, 9)
                      if self.bucket <= _most_elements(bits, self.norm)][:1]
            if self.norm == "l2":
                enough.append(f"bucket {_most_elements(self.bits, self.norm)} or less")
            raise OptionError(
                f"{self.name}: error_feedback is True, norm {self.norm}, bits {self.bits} and "
                f"bucket {self.bucket}, by which what is left out could grow from round to round; "
                f"it must be {', '.join(enough)}, or no error_feedback"
            )


def _most_elements(bits: int, norm: str) -> float:
    """Of a bucket, so that rounding leaves less than it is given."""
    levels = int(2 ** (bits - 1)) - 1
    if norm == "max":
        return math.inf if levels > 1 else 0
    return 4 * levels**2 - 1
