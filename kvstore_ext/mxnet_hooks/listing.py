"""What kvstore-ext --list prints: the stores, their options, and the ways to compress."""
from __future__ import annotations

import inspect
import re
from dataclasses import fields
from typing import List

from .. import compression
from ..config import Options
from .store_names import our_names

_OPTION = re.compile(r"^(\w+)\n((?: {4}.*\n?)+)", re.MULTILINE)


def everything() -> str:
    """Names of stores, then options of all, then those of each compression, for reading."""
    lines = [
        f"stores: {', '.join(our_names())}",
        "  for mx.kv.create(NAME) or --kv-store NAME; each also as dist_sync_NAME",
        "",
        "options of every store, in KVSTORE_EXT_OPTIONS, a JSON object:",
        *_general_options(),
        "",
        "options of stores that compress, there too or by set_gradient_compression:",
        "",
    ]
    return "\n".join([*lines, compression.describe()])


def _general_options() -> List[str]:
    # Without docstrings, as by python -OO, names and defaults are left.
    _, _, attributes = inspect.cleandoc(Options.__doc__ or "").partition("Attributes\n----------\n")
    about = {name: inspect.cleandoc(text) for name, text in _OPTION.findall(attributes)}
    lines: List[str] = []
    for known in fields(Options):
        lines.append(f"  {known.name} = {known.default!r}")
        lines += [f"      {line}" for line in about.get(known.name, "").splitlines()]
    return lines
