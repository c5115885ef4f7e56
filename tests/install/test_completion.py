"""What a shell completes, by argcomplete's protocol: nothing is started, nor MXNet imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.processes import LIMIT

BIN = Path(sys.executable).parent
SEPARATOR = "\v"


def complete(program: list[str], line: str, directory: Path) -> list[str]:
    """What may come at the end of the line, which begins with the program."""
    (directory / "mxnet.py").write_text("raise SystemExit('mxnet was imported')")
    answers = directory / "answers"
    shell = {
        "_ARGCOMPLETE": str(len(program)),
        "_ARGCOMPLETE_IFS": SEPARATOR,
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answers),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "PYTHONPATH": str(directory),
    }
    ended = subprocess.run(
        program,
        cwd=directory,
        env={**os.environ, **shell},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""
    return [word.strip() for word in answers.read_text().split(SEPARATOR)]


@pytest.mark.parametrize(
    ("program", "typed", "expected"),
    [
        ([str(BIN / "kvstore-launch")], "kvstore-launch --num-w", ["--num-workers"]),
        ([str(BIN / "kvstore-ext")], "kvstore-ext --repl", ["--replace"]),
        ([str(BIN / "kvstore-ext")], "kvstore-ext tr", ["train.py"]),
        ([sys.executable, "-m", "kvstore_run"], "python -m kvstore_run --li", ["--list"]),
    ],
)
def test_a_word_is_completed(
    tmp_path: Path, program: list[str], typed: str, expected: list[str]
) -> None:
    (tmp_path / "train.py").write_text("")
    assert complete(program, typed, tmp_path) == expected


@pytest.mark.parametrize("name", ["kvstore_launch.py", "kvstore_run.py", "tools/launch.py"])
def test_a_shell_that_completes_everything_finds_them(name: str) -> None:
    assert "PYTHON_ARGCOMPLETE_OK" in (ROOT / name).read_text()[:1024]
