"""A hook of MkDocs: `<!-- options: terngrad -->` becomes the table of that compression's options.

They are what `python -m kvstore_ext --list` prints, so that documents have no list of their own.
"""
from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import kvstore_ext  # noqa: F401 - which makes the methods known
from kvstore_ext.compression.registry import TYPES

MARK = re.compile(r"<!-- options: (\w+) -->")


def on_page_markdown(markdown: str, **others: Any) -> str:
    """Puts tables where they are asked for."""
    return MARK.sub(lambda mark: table(mark.group(1)), markdown)


def table(name: str) -> str:
    """Markdown: the options of a type, defaults, what they may be, and why there is one."""
    kind = TYPES[name]
    rules = kind.rules()
    rows = ["| option | default | may be | meaning |", "| --- | --- | --- | --- |"]
    for known in fields(kind):
        text = (rules[known.name].allowed, known.metadata["why"])
        # Within backticks a backslash would be shown.
        cells = [f"`{known.name}`", f"`{known.default!r}`",
                 *(re.sub(r"([|*_])", r"\\\1", each) for each in text)]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)
