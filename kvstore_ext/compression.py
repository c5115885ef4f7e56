"""What set_gradient_compression takes: all ways in which less than whole gradients can travel."""
from __future__ import annotations

from dataclasses import fields
from typing import Any, Dict, List, Type

from .errors import OptionError
from .gradient_compression import (
    DGC,
    QSGD,
    Compression,
    GradientCompression,
    Half,
    OneBit,
    TernGrad,
    TwoBit,
)
from .method_options import converted
from .slim_options import SlimDP

__all__ = [
    "DGC",
    "QSGD",
    "TYPES",
    "Compression",
    "GradientCompression",
    "Half",
    "OneBit",
    "SlimDP",
    "TernGrad",
    "TwoBit",
    "describe",
    "option_names",
    "parse",
]

TYPES: Dict[str, Type[Compression]] = {
    kind.name: kind for kind in (TernGrad, QSGD, DGC, OneBit, Half, TwoBit, SlimDP)
}


def parse(parameters: Dict[str, Any]) -> Compression:
    """A compression from MXNet's form: {'type': 'terngrad', 'clip_sigma': 2.5}.

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
    known = {known.name: known for known in fields(TYPES[kind])}
    for name, value in options.items():
        if name not in known:
            raise OptionError(
                f"compression {kind} has no option {name!r}; its options are {', '.join(known)}"
            )
        if known[name].name == "values" and value is not None:
            options[name] = parse({"type": value} if isinstance(value, str) else value)
        else:
            options[name] = converted(known[name], value)
    return TYPES[kind](**options)


def option_names() -> List[str]:
    """The options of all types, each once."""
    return list({known.name: None for kind in TYPES.values() for known in fields(kind)})


def describe() -> str:
    """All types with their options, defaults and what these may be, for reading."""
    lines: List[str] = []
    for name, kind in TYPES.items():
        lines += [f"{name}: {(kind.__doc__ or '').splitlines()[0]}"]
        for known in fields(kind):
            about = known.metadata
            lines.append(f"  {known.name} = {known.default!r}  ({about['allowed']})")
            lines.append(f"      {about['why']}")
        lines.append("")
    return "\n".join(lines)
