"""Where docs/figures.md shows a figure."""
from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "figures.md"


def show(name: str, what: str) -> None:
    """Puts the picture and a link to its numbers where the document has a place for them."""
    FILE.write_text(shown(FILE.read_text(), name, what))


def shown(text: str, name: str, what: str) -> str:
    """The text of the document with the picture; as it is where it has it already."""
    place = f"<!-- figure: {name} -->\n"
    whole = f"{place}\n![{what}](figures/{name}.svg)\n\n[Its numbers](figures/{name}.md)\n"
    return text if whole in text else text.replace(place, whole)
