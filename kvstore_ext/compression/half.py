"""Half the bytes (csrc/codecs/half.h)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .method import GradientCompression
from .options import flag


@dataclass(frozen=True)
class Half(GradientCompression):
    """float16 both ways, rounded to nearest; beyond its range the largest that it has, which AMP
    does not take for an overflow."""

    name: ClassVar[str] = "fp16"
    encodes_parts: ClassVar[bool] = True

    error_feedback: bool = flag(
        False, "add what rounding left out to the next round, on workers and servers"
    )
