"""What a process reads of the job that a launcher has put it into."""

from __future__ import annotations

import pytest
from kvstore_ext.config import Job, notice
from kvstore_ext.errors import OptionError

DMLC = {
    "DMLC_ROLE": "server",
    "DMLC_NUM_WORKER": "3",
    "DMLC_NUM_SERVER": "2",
    "DMLC_PS_ROOT_URI": "10.0.0.1",
    "DMLC_PS_ROOT_PORT": "9000",
}


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in DMLC.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({}, 0),
        ({"PS_RESEND": "0", "PS_RESEND_TIMEOUT": "500"}, 0),
        ({"PS_RESEND": "1"}, 3.5),
        ({"PS_RESEND": "1", "PS_RESEND_TIMEOUT": "200"}, 0.7),
        ({"PS_RESEND": "1", "PS_RESEND_TIMEOUT": "20000"}, 4),
    ],
)
def test_last_words_that_are_lost_are_sent_twice_more(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], seconds: float
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    job = Job.from_environment()
    assert job is not None
    assert job.resending == pytest.approx(seconds)


def test_a_timeout_of_what_is_sent_again_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PS_RESEND", "1")
    monkeypatch.setenv("PS_RESEND_TIMEOUT", "soon")
    with pytest.raises(OptionError, match="PS_RESEND_TIMEOUT is 'soon'; it must be a number"):
        Job.from_environment()


@pytest.mark.parametrize(("text", "seconds"), [("", 30), ("120", 120), ("0.6", 0.6)])
def test_the_time_of_a_process_that_is_told_to_end(
    monkeypatch: pytest.MonkeyPatch, text: str, seconds: float
) -> None:
    monkeypatch.setenv("KVSTORE_EXT_NOTICE", text)
    assert notice() == seconds


@pytest.mark.parametrize("text", ["soon", "0", "-1", "1e3", "1000001"])
def test_a_time_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("KVSTORE_EXT_NOTICE", text)
    with pytest.raises(OptionError, match=f"KVSTORE_EXT_NOTICE is '{text}'; it must be seconds"):
        notice()
