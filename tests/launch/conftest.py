"""The job under test, and nothing of it left behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Callable, Iterator

import pytest
from kvstore_ext.launcher.main import main

from .jobs import Job, clean
from .patched import QUICK, launcher_with
from .sshd import Sshd


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path)
    try:
        yield job
    finally:
        job.end()


@pytest.fixture
def quick(job: Job) -> None:
    """Breaks between two starts of a job are a tenth as long."""
    job.entry = launcher_with(QUICK)


@pytest.fixture
def sshd(job: Job, tmp_path: Path) -> Iterator[Sshd]:
    yield from Sshd(tmp_path, job.mark).serve()


@pytest.fixture
def refuse(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """Calls the launcher with what it refuses, in the job's directory and an environment like that
    of `Job.start`; returns the lines that it says.

    It is called in this process, where it changes nothing before it ends: starting one takes most
    of the time otherwise. An error that it does not tell of fails the test.
    """

    def refuse(*arguments: str, environment: dict[str, str] | None = None) -> list[str]:
        monkeypatch.chdir(job.directory)
        for name in set(os.environ) - set(clean()):
            monkeypatch.delenv(name)
        for name, text in (environment or {}).items():
            monkeypatch.setenv(name, text)
        with pytest.raises(SystemExit) as ended:
            sys.exit(main(["--log-dir", str(job.log_dir), *arguments]))
        assert ended.value.code == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert not job.log_dir.exists()
        return said.err.splitlines()

    return refuse
