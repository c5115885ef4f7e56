"""Where documents show a figure."""
from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "figures.md"
FIRST_PAGE = ROOT / "README.md"
_END = "<!-- end of the figure -->\n"


def show(name: str, what: str) -> None:
    """Puts the picture and a link to its numbers where docs/figures.md has a place for them, and
    picture and numbers where the first page has one."""
    FILE.write_text(shown(FILE.read_text(), name, what))
    numbers = (FILE.parent / "figures" / f"{name}.md").read_text()
    FIRST_PAGE.write_text(shown_first(FIRST_PAGE.read_text(), name, what, numbers))


def shown(text: str, name: str, what: str) -> str:
    """The text of the document with the picture, instead of those that it has."""
    place = f"<!-- figure: {name} -->\n"
    whole = "\n![{}](figures/" + name + ".svg)\n\n[Its numbers](figures/" + name + ".md)\n"
    before = "".join(map(re.escape, whole.partition("{}")[::2])).replace("!\\[", "!\\[[^]]*", 1)
    return re.sub(f"{re.escape(place)}(?:{before})*", lambda _: place + whole.format(what), text)


def shown_first(text: str, name: str, what: str, numbers: str) -> str:
    """The text of the first page with the picture and its numbers, instead of those it has."""
    place = f"<!-- figure: {name} -->\n"
    before, found, rest = text.partition(place)
    if not found:
        return text
    _, _, after = rest.partition(_END)
    return f"{before}{place}\n![{what}](docs/figures/{name}.svg)\n\n{numbers}{_END}{after}"
