"""Each promise about security names the tests that hold it, and those are there."""
from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .documents import ROOT, sections

SECURITY = ROOT / "docs" / "security.md"
SHORT = ROOT / "SECURITY.md"
# Of docs/security.md: the sections whose tables are promises, and how many each has.
TABLES = {
    "What is promised, and against whom": 12,
    "Attacks": 14,
    "Without a key": 9,
    "What cannot be read": 10,
}
# `tests/security/test_attacks.py::test_...`, or `tests/core/gate_test.cc::Gate.AServerRefuses...`.
TEST = re.compile(r"`(tests/[^`\s:]+)::([^`\s]+)`")


def section(document: Path, heading: str) -> str:
    (found,) = (text for text in sections(document) if text.lstrip("# ").startswith(heading + "\n"))
    return found


def rows(text: str) -> list[str]:
    """Those of the tables of a section, without the headings."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [line for line in lines if not re.match(r"\| (?:Promise|Attack|---)", line)]


def points() -> list[str]:
    """What SECURITY.md promises."""
    text = section(SHORT, "What to expect").split("What is not, in a job")[0]
    return re.split(r"\n(?=- )", text)[1:]


def promises() -> list[str]:
    """What docs/security.md has in tables, and SECURITY.md as points."""
    tables = (rows(section(SECURITY, heading)) for heading in TABLES)
    return [*(row for table in tables for row in table), *points()]


def passages() -> list[str]:
    """Rows, points and paragraphs of both documents that name a test."""
    texts = [document.read_text(encoding="utf-8") for document in (SECURITY, SHORT)]
    cut = (passage for text in texts for passage in re.split(r"\n\n|\n(?=- |\| )", text))
    return [passage for passage in cut if TEST.search(passage)]


def test_they_are_found() -> None:
    found = {heading: len(rows(section(SECURITY, heading))) for heading in TABLES}
    assert found == TABLES
    assert len(points()) == 8


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: promise[2:40])
def test_each_is_held_by_a_test(promise: str) -> None:
    assert TEST.search(promise), promise


@pytest.mark.parametrize("passage", passages(), ids=lambda passage: passage[2:40])
def test_what_is_named_is_there_and_runs_where_it_is_said_to(passage: str) -> None:
    named = TEST.findall(passage)
    assert [test for test in named if not is_there(*test)] == []
    if any(is_left_out(*test) for test in named):
        assert "make test-all" in passage


def is_there(path: str, name: str) -> bool:
    """Whether a file has a test of this name."""
    file = ROOT / path
    if not file.exists():
        return False
    text = file.read_text(encoding="utf-8")
    suite, _, test = map(re.escape, name.rpartition("."))
    if suite:
        return re.search(rf"TEST\w*\({suite}, {test}\)", text) is not None
    return re.search(rf"^def {test}\(", text, re.MULTILINE) is not None


def is_left_out(path: str, name: str) -> bool:
    """Whether `make test` has no case of this test at all."""
    if not path.endswith(".py"):
        return False
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            marks: list[ast.expr] = node.decorator_list
        elif isinstance(node, ast.Assign) and "pytestmark" in ast.dump(node.targets[0]):
            marks = [node.value]
        else:
            continue
        if any(isinstance(mark, ast.Attribute) and mark.attr == "all_only" for mark in marks):
            return True
    return False


def test_it_is_said_where_the_cores_tests_run() -> None:
    assert "Those of `tests/core` run in `make sanitize`" in SECURITY.read_text(encoding="utf-8")
    rules = (ROOT / "tests" / "fuzz" / "fuzz.mk").read_text(encoding="utf-8")
    assert re.search(r"^sanitize: run ", rules, re.MULTILINE)


def test_a_name_that_no_test_has_is_noticed() -> None:
    assert is_there("tests/docs/test_promises.py", "test_they_are_found")
    assert not is_there("tests/docs/test_promises.py", "test_they_were_found")
    assert not is_there("tests/docs/test_promise.py", "test_they_are_found")
    assert is_there("tests/core/gate_test.cc", "Gate.AServerKnowsWhoHasJoined")
    assert not is_there("tests/core/gate_test.cc", "Gate.AServerKnowsWhoHasLeft")


def test_a_test_that_make_test_leaves_out_is_noticed() -> None:
    attacks = "tests/security/test_attacks.py"
    assert is_left_out(attacks, "test_a_job_without_a_key_trains_on_in_a_flood")
    assert not is_left_out(attacks, "test_a_job_without_a_key_trains_on")
    assert is_left_out("tests/training/test_mxnet_suites.py", "test_of_no_name")
    assert not is_left_out("tests/security/test_secure_job.py", "test_strangers_are_told_nothing")
