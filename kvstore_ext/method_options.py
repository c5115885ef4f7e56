"""Options of a compression: what each may be, and how a value is checked."""
from __future__ import annotations

import math
from dataclasses import Field, field
from typing import Any, Dict, Tuple, Union

import numpy as np

from .errors import OptionError

Number = Union[int, float]


def number(default: Number, least: Number, most: Number, why: str, above: bool = False) -> Any:
    """An option that is a number from `least`, or above it, to `most`."""
    kind = int if isinstance(default, int) else float
    start = f"above {least}" if above else f"{least}"
    end = f" to {most}" if most < math.inf else "" if above else " or more"
    allowed = f"a {'whole ' if kind is int else ''}number {start}{end}"

    def fits(value: Any) -> bool:
        return (value > least if above else value >= least) and value <= most

    return option(default, kind, fits, allowed, why)


def flag(default: bool, why: str) -> Any:
    """An option that is true or false."""
    return option(default, bool, lambda _: True, "true or false", why)


def choice(default: str, choices: Tuple[str, ...], why: str) -> Any:
    """An option that is one of some words."""
    return option(default, str, lambda value: value in choices, " or ".join(choices), why)


def option(default: Any, kind: Any, fits: Any, allowed: str, why: str) -> Any:
    """An option of a type, or one of several, that fits(value); `allowed` says so in words."""
    about = {"kind": kind, "fits": fits, "allowed": allowed, "why": why}
    return field(default=default, metadata=about)


def converted(known: Field, value: Any) -> Any:
    """The value as the option's type, where MXNet would take it: numbers also as text."""
    kind = known.metadata["kind"]
    if kind == (str, float) and value != "auto":
        kind = float
    if kind is tuple and isinstance(value, (list, tuple)):
        return tuple(value)
    if kind in (int, float) and isinstance(value, str):
        try:
            return kind(value)
        except ValueError:
            return value  # which check refuses
    return float(value) if kind is float and type(value) is int else value


def check(name: str, known: Field, value: Any) -> None:
    """Raises OptionError for a value that the option of this compression cannot have."""
    kind, allowed = known.metadata["kind"], known.metadata["allowed"]
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if right and isinstance(value, float):
        right = np.isfinite(np.float32(value)) and (value == 0 or np.float32(value) != 0)
    if kind is tuple and right:
        right = all(type(element) in (int, str) for element in value)
    if not right or not known.metadata["fits"](value):
        raise OptionError(
            f"{name}: {known.name} is {value!r}; it must be {allowed}"
            + (", in float32" if kind is float else "")
        )


def words(name: str, values: Dict[str, Any]) -> str:
    """A specification for the core: a name, and values by name (csrc/method_options.h)."""
    return " ".join([name, *(f"{option}={_word(value)}" for option, value in values.items())])


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return repr(int(value) if isinstance(value, bool) else value)
