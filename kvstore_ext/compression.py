"""What set_gradient_compression takes: ways to make gradients small on their way to the servers."""
from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Dict

import numpy as np

from .errors import OptionError


@dataclass(frozen=True)
class TwoBit:
    """MXNet's own compression, with its numbers: three values an element, the rest is carried over.

    An element of the gradient and what was left of it in earlier rounds travels as `threshold`, its
    negative or zero, whichever it reaches; what is left stays for the next round. The answer is not
    compressed. For float32 only.
    """

    # Far above the gradients' size nothing is sent for many rounds; far below, much is left behind.
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < np.float32(self.threshold) < math.inf:
            raise OptionError(
                f"threshold is {self.threshold}; it must be above 0 and finite, in float32"
            )

    def specification(self) -> str:
        """For the core (csrc/codec.h)."""
        return f"2bit {self.threshold!r}"


TYPES = {"2bit": TwoBit}


def parse(parameters: Dict[str, Any]) -> TwoBit:
    """A compression from MXNet's form: {'type': '2bit', 'threshold': 0.5}.

    Raises
    ------
    OptionError
        For an unknown type, an option that does not exist, or a value out of range.
    """
    options = dict(parameters)
    kind = options.pop("type", None)
    if kind not in TYPES:
        raise OptionError(
            f"compression type is {kind!r}; it must be one of {', '.join(map(repr, TYPES))}"
        )
    known = [field.name for field in fields(TYPES[kind])]
    for name, value in options.items():
        if name not in known:
            raise OptionError(
                f"compression {kind} has no option {name!r}; its options are {', '.join(known)}"
            )
        try:
            options[name] = float(value)  # MXNet takes them as text too
        except (TypeError, ValueError):
            raise OptionError(f"{name} is {value!r}; it must be a number") from None
    return TYPES[kind](**options)
