"""What a process says of itself on standard error."""

from __future__ import annotations

import io
import sys

import pytest
from kvstore_ext.notes import printable, say


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


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('key "größe", 日本語 \U0001f680\n\tround 3', None),
        ("\x1b[31mred\x1b[0m", "?[31mred?[0m"),
        ("over\rwritten\x08\x7f", "over?written??"),
        ("\x9b31m", "?31m"),
        ("half \ud800", "half ?"),
    ],
)
def test_what_others_say_is_shown_as_the_core_shows_it(said: str, shown: str | None) -> None:
    assert printable(said) == (shown or said)
