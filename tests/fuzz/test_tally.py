"""Runs of a fuzz target add up over many starts, on any machines, as long as its sources stay."""
from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from . import __main__ as python_targets
from . import programs, tally

# As libFuzzer says how many runs it has had, at most 70 at a time beside the corpus's two.
_PROGRAM = """#!/bin/sh
for argument; do case $argument in -runs=*) runs=${argument#-runs=};; esac; done
[ "$runs" -lt 72 ] || runs=72
echo "stat::number_of_executed_units: $runs" >&2
exit STATUS
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "corpus").mkdir()
    for name in ("one", "two"):
        (tmp_path / "corpus" / name).touch()
    for name in ("target.cc", "keys.cc", "by_hand.cc", "fuzz.mk"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(programs, "_HERE", tmp_path)
    monkeypatch.setattr(tally, "DIRECTORY", tmp_path / "counted")
    monkeypatch.setattr(tally, "KEPT", tmp_path / "runs.json")
    return _written(tmp_path, 0)


def _written(directory: Path, status: int) -> Path:
    program = directory / "target"
    program.write_text(_PROGRAM.replace("STATUS", str(status)))
    program.chmod(0o755)
    return program


def _start(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["programs", *arguments])
    return programs.main()


def test_they_are_run_until_there_are_enough(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ["--runs", "150", "--corpus", "corpus", "target", "-max_len=600"]
    assert _start(monkeypatch, *start) == 0
    assert capsys.readouterr().out.startswith("target: 150 of 150 runs in ")
    assert _start(monkeypatch, *start) == 0, "and no more of them"
    assert capsys.readouterr().out.startswith("target: 150 of 150 runs in ")
    tally.keep()
    shutil.rmtree("counted")
    assert _start(monkeypatch, *start) == 0, "nor on another machine"
    assert capsys.readouterr().out.startswith("target: 150 of 150 runs in ")
    Path("target.cc").write_text("changed")
    assert _start(monkeypatch, *start, "--runs", "60") == 0
    assert capsys.readouterr().out.startswith("target: 60 of 60 runs in ")


def test_a_finding_ends_them(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _written(program.parent, 77)
    assert _start(monkeypatch, "--runs", "150", "--corpus", "corpus", "target") == 77
    assert "target: 70 of 150 runs in " in capsys.readouterr().err


def test_runs_before_ctrl_c_count(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text("#!/bin/sh\nkill -INT $PPID\n" + _PROGRAM.replace("STATUS", "72"))
    assert _start(monkeypatch, "--runs", "150", "--corpus", "corpus", "target") == 130
    assert "target: 70 of 150 runs in " in capsys.readouterr().err


def test_those_of_python_go_on_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tally, "DIRECTORY", tmp_path)
    monkeypatch.setattr(tally, "KEPT", tmp_path / "runs.json")
    for goal in ("40", "100", "100"):
        monkeypatch.setattr(sys, "argv", ["fuzz", "--runs", goal, "--seed", "0", "optimizer"])
        assert python_targets.main() == 0
        assert capsys.readouterr().out.startswith(f"optimizer: {goal} of {goal} runs in ")
