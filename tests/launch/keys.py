"""Which keys the processes of a job have, looked at while it runs."""

from __future__ import annotations

import re
from pathlib import Path

from kvstore_ext.launcher.job_key import NAME

from .jobs import Job

NAMES = ("worker 0", "worker 1", "server 0", "scheduler 0")
_STAY = "echo up; while [ ! -e looked ]; do sleep 0.05; done"


def keys(job: Job, *options: str, environment: dict[str, str] | None = None) -> set[str]:
    """Runs a job; returns the keys of its processes, none of which a command line has; "" of one
    without."""
    arguments = ["-n", "2", "-s", "1", "--server-command", f"sh -c '{_STAY}'", "sh", "-c", _STAY]
    job.start(*options, *arguments, environment=environment)
    for name in NAMES:
        job.wait_for_line(f"[{name}] up")
    found = {_key_of(job.process(name)) for name in NAMES}
    commands = " ".join(job.processes().values())
    assert not any(key and key in commands for key in found)
    (job.directory / "looked").touch()
    assert job.wait() == 0, job.errors
    return found


def assert_one_key(found: set[str]) -> None:
    """Asserts that it is one, as the launcher makes them."""
    (key,) = found
    assert re.fullmatch("[0-9a-f]{64}", key), key


def _key_of(process: int) -> str:
    entries = Path(f"/proc/{process}/environ").read_text().split("\0")
    return dict(entry.partition("=")[::2] for entry in entries).get(NAME, "")
