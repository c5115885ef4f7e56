"""The largest elements of each gradient (csrc/codecs/topk.h)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .method import GradientCompression
from .options import number


@dataclass(frozen=True)
class TopK(GradientCompression):
    """The largest elements of each gradient; the others are lost.

    Gradient dropping (Aji and Heafield, EMNLP 2017) without its residuals.
    """

    name: ClassVar[str] = "topk"

    ratio: float = number(0.01, "share of a key's elements that is sent, rounded up")
