"""Deep gradient compression: the largest elements (csrc/codecs/dgc.h and dgc_encoder.h)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .method import GradientCompression
from .options import flag, number


@dataclass(frozen=True)
class DGC(GradientCompression):
    """The largest elements of accumulated gradients (Lin et al., ICLR 2018).

    A worker adds up its gradients with momentum, and sends the elements that have grown largest;
    the others go on accumulating (momentum correction). The momentum is taken over from an SGD
    optimizer, whose own becomes 0, and whose weight decay becomes what momentum would make of it
    (compression/momentum.py). The sum travels back with its non-zero elements. Beyond the paper:
    the count of elements is exact for each key; `clip_norm` is of a key's sum over this worker's
    batch, before Trainer.step divides it (the paper's section 3.2 clips the whole model's mean);
    the learning rate is outside the momentum, as in the paper and not in MXNet's SGD, so that what
    has gathered before a change of it counts by the new one; and the momentum of what is sent is
    cleared (factor masking) only with `momentum_masking`, because that costs accuracy where 10 %
    are sent and more (benchmarks/dgc_ablation.md; with the default's share nothing is told from
    zero).
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
        "l2 norm that a key's gradient, a sum over the batch, is clipped at, over sqrt(workers) on "
        "each; 0: not at all",
    )
    momentum_masking: bool = flag(
        False, "forget the momentum of what is sent, as the paper does; or it stays"
    )

    @property
    def carries_over(self) -> bool:
        return True
