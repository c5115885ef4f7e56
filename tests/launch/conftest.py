"""The job under test, and nothing of it left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

from .jobs import Job
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
