"""How a snapshot's compression differs from a run's, in the words by which users ask for one."""
from __future__ import annotations

import ast
from typing import Dict, List, Tuple

from .registry import TYPES


def differing(saved: str, found: str) -> Tuple[str, str]:
    """Both by their type's name, with the options in which two of one type differ.

    Parameters
    ----------
    saved, found
        As repr gives them, which snapshots keep: "None", or "TernGrad(exclude=(), ...)".
    """
    name, options = _taken_apart(saved)
    other, others = _taken_apart(found)
    if name != other:
        return name, other
    differing = [option for option in {**options, **others} if _differ(option, options, others)]
    return _with(name, options, differing), _with(other, others, differing)


def _taken_apart(text: str) -> Tuple[str, Dict[str, str]]:
    """A type's name, and its options as they are written; all of it where it is no type's."""
    names = {kind.__name__: name for name, kind in TYPES.items()}
    if text == "None":
        return "no compression", {}
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        return text, {}
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return text, {}
    given = {str(option.arg): option.value for option in call.keywords}
    options = {name: ast.get_source_segment(text, value) or "" for name, value in given.items()}
    return names.get(call.func.id, call.func.id), options


def _differ(option: str, one: Dict[str, str], other: Dict[str, str]) -> bool:
    return one.get(option) != other.get(option)


def _with(name: str, options: Dict[str, str], chosen: List[str]) -> str:
    told = [f"{option} {options.get(option, 'unknown')}" for option in chosen]
    return f"{name} with {', '.join(told)}" if told else name
