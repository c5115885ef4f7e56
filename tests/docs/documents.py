"""The documents of the repository, read as Markdown: links, anchors, sections, code, commands."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Iterator, NamedTuple

ROOT = Path(__file__).resolve().parents[2]

# Inline links and definitions of named ones, with their targets.
_LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)", re.MULTILINE)
_NAMED = re.compile(r"\[([^\]]+)\](?![(:\[])")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")


class Code(NamedTuple):
    """A fenced block, or a command of one, and where it begins."""

    document: Path
    line: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


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


def code(document: Path, language: str) -> Iterator[Code]:
    """The document's blocks in a language."""
    text = document.read_text(encoding="utf-8")
    for block in _FENCE.finditer(text):
        if block[1] == language:
            yield Code(document, text.count("\n", 0, block.start(2)) + 1, block[2])


def commands(document: Path) -> Iterator[Code]:
    """The commands of its `sh` blocks, without comments."""
    for block in code(document, "sh"):
        for line in re.sub(r"\s*\\\n\s*", " ", block.text).splitlines():
            command = re.sub(r"(^|\s+)#( .*)?$", "", line).strip()
            if command:
                yield Code(document, block.line, command)


def sections(document: Path) -> Iterator[str]:
    """Its text, cut before each heading that is not in code."""
    text = document.read_text(encoding="utf-8")
    inside = [block.span() for block in _FENCE.finditer(text)]
    begins = [heading.start() for heading in re.finditer(r"^#+ ", text, re.MULTILINE)
              if not any(first < heading.start() < last for first, last in inside)]
    for begin, end in zip([0, *begins], [*begins, len(text)]):
        yield text[begin:end]
