"""Each promise about security names the tests that hold it, and those are there."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from .documents import ROOT, sections

SECURITY = ROOT / "docs" / "security.md"
SHORT = ROOT / "SECURITY.md"
# `tests/security/test_attacks.py::test_...`, or `tests/core/gate_test.cc::Gate.AServerRefuses...`.
TEST = re.compile(r"`(tests/[\w/]+\.(?:py|cc))::([\w.]+)`")


def section(document: Path, heading: str) -> str:
    (found,) = (text for text in sections(document) if text.lstrip("# ").startswith(heading + "\n"))
    return found


def rows(text: str) -> list[str]:
    """Those of the tables of a section, without the headings."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [line for line in lines if not re.match(r"\| (?:Promise|Attack|---)", line)]


def promises() -> list[str]:
    """What docs/security.md has in tables, and SECURITY.md as points."""
    points = section(SHORT, "What to expect").split("What is not, in a job")[0]
    return [
        *rows(section(SECURITY, "What is promised, and against whom")),
        *rows(section(SECURITY, "Attacks")),
        *rows(section(SECURITY, "What cannot be read")),
        *(point for point in re.split(r"\n(?=- )", points)[1:]),
    ]


def test_they_are_found() -> None:
    assert len(promises()) >= 25


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: promise[2:40])
def test_each_is_held_by_a_test(promise: str) -> None:
    named = TEST.findall(promise)
    assert named, promise
    assert [test for test in named if not is_there(*test)] == []


def is_there(path: str, name: str) -> bool:
    """Whether a file has a test of this name."""
    file = ROOT / path
    if not file.exists():
        return False
    text = file.read_text(encoding="utf-8")
    suite, _, test = name.rpartition(".")
    if suite:
        return re.search(rf"TEST\w*\({suite}, {test}\)", text) is not None
    return re.search(rf"^def {name}\(", text, re.MULTILINE) is not None


def test_a_name_that_no_test_has_is_noticed() -> None:
    assert is_there("tests/docs/test_promises.py", "test_they_are_found")
    assert not is_there("tests/docs/test_promises.py", "test_they_were_found")
    assert not is_there("tests/docs/test_promise.py", "test_they_are_found")
    assert is_there("tests/core/gate_test.cc", "Gate.AServerKnowsWhoHasJoined")
    assert not is_there("tests/core/gate_test.cc", "Gate.AServerKnowsWhoHasLeft")
