"""What a process says of itself on standard error."""

from __future__ import annotations

import io
import sys

import pytest
from kvstore_ext.notes import say


def test_a_line_has_the_packages_name(capsys: pytest.CaptureFixture[str]) -> None:
    say("the job ends")
    assert capsys.readouterr().err == "kvstore_ext: the job ends\n"


class Closed(io.StringIO):
    """Whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_nobody_has_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (closed, Closed()):
        monkeypatch.setattr(sys, "stderr", stream)
        say("the job ends")
