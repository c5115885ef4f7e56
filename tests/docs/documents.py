"""The documents of the repository, read as Markdown: links, and the anchors that they have."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[2]

# Inline links and definitions of named ones, with their targets.
_LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)", re.MULTILINE)
_NAMED = re.compile(r"\[([^\]]+)\](?![(:\[])")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")


def documents() -> list[Path]:
    """All of them, README first."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"),
             *ROOT.glob("examples/*.md")]
    return sorted(found, key=lambda path: (path.name != "README.md", path))


def prose(document: Path) -> str:
    """The text without what stands in code."""
    return _CODE.sub("", _FENCE.sub("", document.read_text(encoding="utf-8")))


def links(document: Path) -> Iterator[str]:
    """Targets of the document's links."""
    for inline, named in _LINK.findall(prose(document)):
        yield inline or named


def undefined_names(document: Path) -> set[str]:
    """Names in brackets that look like files, but have no definition at the document's end."""
    text = prose(document)
    defined = set(re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE))
    return {name for name in _NAMED.findall(text) if "." in name} - defined


def anchors(document: Path) -> set[str]:
    """What a link to a heading of the document may name, as code hosts and MkDocs form it."""
    text = _FENCE.sub("", document.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
            for heading in headings}
