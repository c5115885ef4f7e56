"""What the documents quote is in the sources; figures stand beside the commands that made them."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from .documents import ROOT, sections
from .sources import texts

FAILURES = ROOT / "docs" / "failures.md"
# Documents with figures that were measured.
MEASURED = [
    ROOT / "README.md",
    ROOT / "docs" / "figures.md",
    *ROOT.glob("benchmarks/*.md"),
]
FIGURE = re.compile(r"\d(?:\.\d+)? ?(?:points|%|times|s\b|ms\b|min\b|MB/s|Mbit/s|Gbit/s|samples/s)")


def quoted_messages() -> list[str]:
    """The first column of each table of messages."""
    return re.findall(r"^\| `([^`]+)` \|", FAILURES.read_text(encoding="utf-8"), re.MULTILINE)


def test_quoted_messages_are_in_the_sources() -> None:
    assert len(quoted_messages()) >= 9
    known = set(texts())
    gone = [message for message in quoted_messages() if not any(message in one for one in known)]
    assert gone == []


@pytest.mark.parametrize("document", MEASURED, ids=lambda path: str(path.relative_to(ROOT)))
def test_figures_stand_beside_their_commands(document: Path) -> None:
    """In the section, or in the document where it is the output of one command."""
    if document.parent.name == "benchmarks":
        found = [document.read_text(encoding="utf-8")]
    else:
        found = list(sections(document))
    for section in found:
        prose = re.sub(r"^```.*?^```", "", section, flags=re.MULTILINE | re.DOTALL)
        has_command = "```sh" in section or re.search(r"Made by `[^`]*python ", section)
        assert has_command or not FIGURE.search(prose), section
