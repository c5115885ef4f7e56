"""TernGrad: three values an element (csrc/codecs/terngrad.h)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .method import GradientCompression
from .options import flag, number


@dataclass(frozen=True)
class TernGrad(GradientCompression):
    """Three values an element, drawn at random about the gradient (Wen et al., NeurIPS 2017).

    A gradient is clipped (equation 21), scaled by its key's largest element (equation 2; layer by
    layer, a bias being a key of its own), and each element rounded at random to -1, 0 or 1 so that
    the mean is right (equations 1 and 3). A key whose elements are nearly alike is clipped far
    below them, as equation 21 has it; where they are equal, nothing is. With a shared scaler
    (equation 4) the sum has 2N + 1 values for N workers, and travels back as such; workers apply it
    to parameters of their own (section 3.1).
    """

    name: ClassVar[str] = "terngrad"
    encodes_parts: ClassVar[bool] = True

    clip_sigma: float = number(
        2.5, "gradients are clipped at so many standard deviations of their key's; 0: not at all"
    )
    scaler_sharing: bool = flag(
        True, "scale by the largest of the workers' scalers; without it sums travel back as floats"
    )
    seed: int = number(0, "of the random numbers; equal on all workers")
