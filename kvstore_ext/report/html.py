"""Pieces of HTML and of SVG. Texts are escaped here, and nowhere else.

Widths in pictures are per cents of the place that there is, and letters keep their size: so they
can be read on a phone.
"""
from __future__ import annotations

from html import escape
from typing import Iterable, Sequence, Union

import numpy as np

Cell = Union[str, "Markup"]


class Markup(str):
    """Text that is HTML already."""


def text(value: Cell) -> Markup:
    """Escapes what is no markup."""
    return value if isinstance(value, Markup) else Markup(escape(value))


def tag(name: str, *inside: Cell, **attributes: Union[str, float]) -> Markup:
    """An element. `class_` is the attribute class, and `view_box` is viewBox."""
    spelled = {"class_": "class", "view_box": "viewBox", "aspect": "preserveAspectRatio"}
    said = "".join(
        f' {spelled.get(key, key.replace("_", "-"))}="{escape(_short(value))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{said}>{''.join(text(one) for one in inside)}</{name}>")


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]], names: int = 1) -> Markup:
    """A table whose first `names` columns are words and whose others are numbers."""

    def classed(place: int) -> str:
        return "word" if place < names else "number"

    head = tag("tr", *(tag("th", one, class_=classed(at)) for at, one in enumerate(heads)))

    def cells(row: Sequence[Cell]) -> Iterable[Markup]:
        return (tag("td", _breakable(one), class_=classed(at)) for at, one in enumerate(row))

    body = [tag("tr", *cells(row)) for row in rows]
    inside = tag("table", tag("thead", head), tag("tbody", *body))
    return tag("div", inside, class_="table", tabindex="0", role="region", aria_label=heads[0])


def _breakable(cell: Cell) -> Cell:
    """A name may go on in the next line after an underscore."""
    return cell if isinstance(cell, Markup) else Markup(text(cell).replace("_", "_<wbr>"))


def rectangle(left: float, width: float, height: float, kind: str, title: str) -> Markup:
    """`left` and `width` in per cent, `height` in pixels."""
    return tag(
        "rect",
        tag("title", title),
        x=f"{_short(left)}%",
        width=f"{_short(width)}%",
        height=height,
        class_=kind,
    )


def area(values: np.ndarray, most: float, kind: str, down: bool = False) -> Markup:
    """Steps filled down to zero, one a value, as a path in a box of width `len(values)` from -1 to
    1."""
    heights = np.minimum(values / most, 1.0) if most else np.zeros(len(values))
    signed = heights if down else -heights
    path = "M0 0" + "".join(f"V{_short(high)}H{at}" for at, high in enumerate(signed, 1)) + "V0Z"
    return tag("path", d=path, class_=kind)


def _short(value: Union[str, float]) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
