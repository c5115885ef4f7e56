"""MXNet's own compression (csrc/codecs/two_bit.h)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Tuple

import numpy as np

from .method import GradientCompression
from .options import number


@dataclass(frozen=True)
class TwoBit(GradientCompression):
    """MXNet's own compression, with its numbers: three values an element, the rest is carried over.

    An element of the gradient and what was left of it in earlier rounds travels as `threshold`, its
    negative or zero, whichever it reaches; what is left stays for the next round. The answer is not
    compressed. For float32 only.
    """

    name: ClassVar[str] = "2bit"
    dtypes: ClassVar[Tuple[type, ...]] = (np.float32,)
    sparse_travels_plain: ClassVar[bool] = False  # as MXNet's
    prefers_workers: ClassVar[bool] = False

    threshold: float = number(
        0.5, "far above the gradients' size nothing is sent for long, far below much is left behind"
    )

    @property
    def carries_over(self) -> bool:
        return True
