"""An option of a method: how it is declared, what it may be, and how a value is checked.

A method's class has a field an option, which says its default and why there is one. The range of
what the core is told stands there, beside the code that it protects, and is asked for
(csrc/codecs/method_options.h); an option that only Python knows says its own here.
"""
from __future__ import annotations

import math
from dataclasses import Field, field
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from .. import _core
from ..errors import OptionError

Number = Union[int, float]


class Rule(NamedTuple):
    """What an option may be: in words, and whether a value of its type is that."""

    allowed: str
    fits: Callable[[Any], bool]


def number(default: Number, why: str, own: Optional[Rule] = None) -> Any:
    """An option that is a number, whole where its default is, of the core's range or its own."""
    return option(default, int if isinstance(default, int) else float, own, why)


def flag(default: bool, why: str) -> Any:
    """An option that is true or false."""
    return option(default, bool, Rule("true or false", lambda _: True), why)


def choice(default: str, why: str, own: Tuple[str, ...] = ()) -> Any:
    """An option that is one of some words, the core's or its own."""
    rule = Rule(" or ".join(own), lambda value: value in own)
    return option(default, str, rule if own else None, why)


def option(default: Any, kind: Any, own: Optional[Rule], why: str) -> Any:
    """An option of a type, or one of several; without a rule of its own it has the core's."""
    return field(default=default, metadata={"kind": kind, "own": own, "why": why})


def whole(least: int, most: int) -> Rule:
    """Whole numbers of a range of their own."""
    return _rule(_core.MethodOption(least=least, most=most, whole=True))


def rules(options: Tuple[Field, ...], core: List[_core.MethodOption]) -> Dict[str, Rule]:
    """What each of a method's options may be, by name; `core` are those that the core knows."""
    limits = {known.name: known for known in core}
    return {
        known.name: known.metadata["own"] or _rule(limits[known.name]) for known in options
    }


def _rule(limits: _core.MethodOption) -> Rule:
    if limits.words:
        return Rule(limits.allowed, lambda value: value in limits.words)

    def fits(value: Number) -> bool:
        begins = value > limits.least if limits.above else value >= limits.least
        return begins and value <= limits.most

    return Rule(limits.allowed, fits)


def converted(known: Field, value: Any) -> Any:
    """The value as the option's type, where MXNet would take it: numbers also as text."""
    kind = known.metadata["kind"]
    if isinstance(value, np.generic):
        value = value.item()
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


def check(name: str, known: Field, rule: Rule, value: Any) -> None:
    """Raises OptionError for a value that the option of this method cannot have."""
    kind = known.metadata["kind"]
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if right and isinstance(value, float):
        right = math.isfinite(np.float32(value)) and (value == 0 or np.float32(value) != 0)
    if not right or not rule.fits(value):
        raise OptionError(
            f"{name}: {known.name} is {value!r}; it must be {rule.allowed}"
            + (", in float32" if kind is float else "")
        )


def specification(name: str, values: Dict[str, Any]) -> str:
    """What the core is told of a method, by name (csrc/codecs/method_options.h)."""
    return " ".join([name, *(f"{option}={_word(value)}" for option, value in values.items())])


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return repr(int(value) if isinstance(value, bool) else value)
