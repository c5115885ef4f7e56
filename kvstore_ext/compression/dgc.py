"""Deep gradient compression: the largest elements (csrc/codecs/dgc.h, csrc/codecs/dgc_encoder.h)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .method import GradientCompression
from .options import number


@dataclass(frozen=True)
class DGC(GradientCompression):
    """The largest elements of accumulated gradients (Lin et al., ICLR 2018).

    A worker adds up its gradients with momentum, and sends the elements that have grown largest;
    the others go on accumulating, and the momentum of those sent is cleared (momentum correction
    and factor masking). The momentum is taken over from an SGD optimizer, whose own becomes 0. The
    sum travels back with its non-zero elements. Beyond the paper: the count of elements is exact
    for each key.
    """

    name: ClassVar[str] = "dgc"
    applies_momentum: ClassVar[bool] = True

    ratio: float = number(0.001, "share of elements sent in the end")
    warmup_rounds: int = number(
        0, "rounds in which the share falls from a quarter; the paper's are 4 epochs"
    )
    warmup_stages: int = number(4, "steps in which it falls, exponentially")
    clip_norm: float = number(
        0.0,
        "l2 norm that a key's gradient is clipped at, over sqrt(workers) on each; 0: not at all",
    )
