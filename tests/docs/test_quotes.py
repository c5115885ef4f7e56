"""What the documents quote is in the sources; figures stand beside the commands that made them."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from kvstore_ext.predict.table import OFF

from .documents import ROOT, sections
from .sources import texts

FAILURES = ROOT / "docs" / "failures.md"
PREDICTION = ROOT / "docs" / "prediction.md"
# Documents with figures that were measured, and those that are the output of one command.
MEASURED = [
    ROOT / "README.md",
    ROOT / "docs" / "figures.md",
    ROOT / "docs" / "performance.md",
    PREDICTION,
    *ROOT.glob("benchmarks/*.md"),
]
OF_ONE_COMMAND = [PREDICTION, *ROOT.glob("benchmarks/*.md")]
FIGURE = re.compile(r"\d(?:\.\d+)? ?(?:points|%|times|s\b|ms\b|min\b|MB/s|Mbit/s|Gbit/s|samples/s)")


# Where numbers are mostly limits that are set, one that was measured stands where that is said.
TOLD = re.compile(r"\b(?:measured|found|grew|took)\b")
COMMAND = re.compile(r"`(?:make|python)\s[^`]+`")


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def told_without_command(text: str) -> list[str]:
    """Paragraphs with numbers that were measured, and without the command that measured them."""
    paragraphs = without_blocks(text).split("\n\n")
    told = [each for each in paragraphs if TOLD.search(each) and re.search(r"\d", each)]
    return [each for each in told if not COMMAND.search(each)]


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
    if document in OF_ONE_COMMAND:
        found = [document.read_text(encoding="utf-8")]
    else:
        found = list(sections(document))
    for section in found:
        prose = without_blocks(section)
        has_command = "```sh" in section or re.search(r"Made by `[^`]*python ", section)
        assert has_command or not FIGURE.search(prose), section


def test_what_was_found_of_failures_stands_beside_its_commands() -> None:
    text = FAILURES.read_text(encoding="utf-8")
    prose = "\n\n".join(part for part in text.split("\n\n") if not part.startswith("| Message"))
    assert "`make soak` measured up to 166 bytes" in prose
    assert told_without_command(prose) == []
    without = prose.replace("`make soak` measured", "We measured")
    (found,) = told_without_command(without)
    assert "We measured up to 166 bytes" in found


def test_ties_are_at_least_as_wide_as_predictions_were_off() -> None:
    text = PREDICTION.read_text(encoding="utf-8")
    for store, arm in (("dist_sync",) * 2, ("stock_p3",) * 2, ("ring", "horovod")):
        worst = re.search(rf"^\| {arm} \|.*\| ([\d.]+) % \|$", text, re.MULTILINE)
        assert worst is not None
        assert 100 * OFF[store] >= float(worst[1])
