#!/usr/bin/env python3
"""Checks that a built site shows without a network: python tools/check_site.py build/site.

What pages and style sheets load has to lie in the site; links that a reader follows may lead away.
"""
from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

# What a browser loads by itself: the attribute of a tag.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
AWAY = re.compile(r"(?:https?:)?//")


class Page(HTMLParser):
    """Collects what a page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: List[str] = []

    def handle_starttag(self, tag: str, attributes: List[Tuple[str, Optional[str]]]) -> None:
        for name, value in attributes:
            if LOADED.get(tag) == name and AWAY.match(value or ""):
                self.found.append(value or "")


def loads(site: Path) -> Iterator[str]:
    """What is loaded from elsewhere, with the file that does, a line each."""
    for file in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(file.read_text(encoding="utf-8"))
        yield from (f"{file}: {what}" for what in page.found)
    for file in sorted(site.rglob("*.css")):
        text = file.read_text(encoding="utf-8")
        found = re.findall(r"(?:url\(|@import\s+)['\"]?((?:https?:)?//[^'\")]+)", text)
        yield from (f"{file}: {what}" for what in found)


def main() -> int:
    """Prints what is wrong; the status is 1 where anything is, or where there is no site."""
    site = Path(sys.argv[1])
    found = list(loads(site)) if (site / "index.html").exists() else [f"{site}: no index.html"]
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
