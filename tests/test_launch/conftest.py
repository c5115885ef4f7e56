"""The job under test, and nothing of it left behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Iterator

import pytest

from .jobs import LAUNCH, Job
from .sshd import Sshd

# The launcher's own modules, for the tests of what it builds but cannot run here.
sys.path.insert(0, str(LAUNCH.parent))


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path)
    try:
        yield job
    finally:
        job.end()


@pytest.fixture
def sshd(job: Job, tmp_path: Path) -> Iterator[Sshd]:
    yield from Sshd(tmp_path, job.mark).serve()
