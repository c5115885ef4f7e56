"""A part of a report's page, and what tables of several parts share."""
from __future__ import annotations

from typing import List, NamedTuple, Sequence

from .html import Markup, table, tag

_MOST_ROWS = 12


class Section(NamedTuple):
    """A part of the page: `name` is its anchor."""

    name: str
    title: str
    about: str
    content: Sequence[Markup]


def note(said: str) -> Markup:
    """A remark below a table."""
    return tag("p", said, class_="note")


def folded(heads: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1) -> List[Markup]:
    """A table of the first rows, and the others behind a line that opens them."""
    if not rows:
        return []
    shown = [table(heads, rows[:_MOST_ROWS], names)]
    rest = rows[_MOST_ROWS:]
    if rest:
        shown.append(more(f"{len(rest)} more", table(heads, rest, names)))
    return shown


def more(title: str, inside: Markup) -> Markup:
    """What a reader may open."""
    return tag("details", tag("summary", title), inside)
