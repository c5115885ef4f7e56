"""The methods that there are, by name, and the forms in which users ask for one."""
from __future__ import annotations

from dataclasses import Field, fields
from typing import Any, Dict, List, Mapping, Type, Union

from ..config import Options, environment_options
from ..errors import OptionError
from ..spelling import did_you_mean
from .method import Compression
from .options import converted

# In the order in which they were registered; methods.py registers all.
TYPES: Dict[str, Type[Compression]] = {}

# Options that every store has, of its keys that travel uncompressed; some methods have them, too.
OF_STORES = frozenset(known.name for known in fields(Options))


def register(kind: Type[Compression]) -> None:
    """Makes a method known by its name.

    Raises
    ------
    ValueError
        For a name that another method has.
    """
    if kind.name in TYPES:
        raise ValueError(f"{kind.name} is the name of {TYPES[kind.name]} already, not of {kind}")
    TYPES[kind.name] = kind


def parse(parameters: Union[str, Mapping[str, Any]], **defaults: Any) -> Compression:
    """A compression from MXNet's form, {'type': 'terngrad', 'clip_sigma': 2.5}, or its name alone.

    Parameters
    ----------
    defaults
        Options that hold where the parameters do not have them; those of every store only where the
        method has them, too.

    Raises
    ------
    OptionError
        For an unknown type, an option that does not exist, or a value out of range.
    """
    if isinstance(parameters, str):
        parameters = {"type": parameters}
    if not isinstance(parameters, Mapping):
        raise OptionError(
            f"compression is {parameters!r}; it must be a dict such as {{'type': 'terngrad'}}, or "
            "the type alone"
        )
    options = {**defaults, **parameters}
    kind = options.pop("type", None)
    if kind not in list(TYPES):  # whatever the kind is: a list cannot be looked up
        raise OptionError(
            f"compression type is {kind!r}; it must be one of {', '.join(map(repr, TYPES))}"
            + (did_you_mean(kind, {name: name for name in TYPES}) if isinstance(kind, str) else "")
        )
    known = {known.name: known for known in fields(TYPES[kind])}
    for name in OF_STORES & set(defaults) - set(known) - set(parameters):
        del options[name]
    for name, value in options.items():
        if name not in known:
            raise OptionError(
                f"compression {kind} has no option {name!r}; its options are {', '.join(known)}"
                + did_you_mean(str(name), {option: option for option in known})
            )
        if _is_method(known[name]) and value is not None:
            options[name] = parse(value)
        else:
            options[name] = converted(known[name], value)
    return TYPES[kind](**options)


def _is_method(known: Field) -> bool:
    """Whether an option is itself a method, with options of its own."""
    kind = known.metadata["kind"]
    return isinstance(kind, tuple) and Compression in kind


def option_names() -> List[str]:
    """The options of all types, each once."""
    return list({known.name: None for kind in TYPES.values() for known in fields(kind)})


def options_of_environment() -> Dict[str, Any]:
    """What KVSTORE_EXT_OPTIONS says of the compression, whichever the store has."""
    others = option_names()
    return {name: value for name, value in environment_options().items() if name in others}


def describe() -> str:
    """All types with their options, defaults and what these may be, for reading."""
    lines: List[str] = []
    for name, kind in TYPES.items():
        lines += [f"{name}: {(kind.__doc__ or '').splitlines()[0]}"]
        rules = kind.rules()
        for known in fields(kind):
            lines.append(f"  {known.name} = {known.default!r}  ({rules[known.name].allowed})")
            lines.append(f"      {known.metadata['why']}")
        lines.append("")
    return "\n".join(lines)
