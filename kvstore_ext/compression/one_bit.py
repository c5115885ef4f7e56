"""One-bit SGD: the sign of each element, and two means a bucket (csrc/codecs/one_bit.h)."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Dict, Tuple

from .method import GradientCompression
from .options import flag, number, whole


@dataclass(frozen=True)
class OneBit(GradientCompression):
    """The sign of each element, and two means a bucket (Seide et al., Interspeech 2014).

    What the means miss is added to the next round's gradient, and on the servers to the next sum,
    which travels back likewise.
    """

    name: ClassVar[str] = "onebit"

    # The core knows no 0, and takes columns of any length.
    bucket: int = number(
        512,
        "elements that share two means, of 32 bits each; 0: the paper's columns",
        whole(0, 1 << 24),
    )
    error_feedback: bool = flag(True, "without it training does not converge in general")

    def core_values(self, shape: Tuple[int, ...]) -> Dict[str, Any]:
        # A column of the paper's matrices holds the weights into one unit: here, all but the first
        # dimension. A bias has no columns.
        columns = math.prod(shape[1:]) if len(shape) > 1 else 512
        return {**super().core_values(shape), "bucket": self.bucket or max(1, columns)}
