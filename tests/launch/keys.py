"""Which keys the processes of a job have, looked at while it runs."""

from __future__ import annotations

import re
from pathlib import Path

from kvstore_ext.launcher.agent import TOKEN_NAME
from kvstore_ext.launcher.job_key import NAME

from .jobs import Job

NAMES = ("worker 0", "worker 1", "server 0", "scheduler 0")
_STAY = "echo up; while [ ! -e looked ]; do sleep 0.05; done"


def keys(job: Job, *options: str, environment: dict[str, str] | None = None) -> set[str]:
    """Runs a job; returns the keys of its processes, none of which a command line has; "" of one
    without. Nor has one the token of which tasks make the key."""
    arguments = ["-n", "2", "-s", "1", "--server-command", f"sh -c '{_STAY}'", "sh", "-c", _STAY]
    job.start(*options, *arguments, environment=environment)
    for name in NAMES:
        job.wait_for_line(f"[{name}] up")
    found = {_variable(job.process(name), NAME) for name in NAMES}
    processes = job.processes()
    tokens = {_variable(process, TOKEN_NAME) for process in processes} - {""}
    assert bool(tokens) == any(launcher in options for launcher in ("mpi", "slurm"))
    commands = " ".join(processes.values())
    assert not any(secret and secret in commands for secret in found | tokens)
    (job.directory / "looked").touch()
    assert job.wait() == 0, job.errors
    return found


def assert_one_key(found: set[str]) -> None:
    """Asserts that it is one, as the launcher makes them."""
    (key,) = found
    assert re.fullmatch("[0-9a-f]{64}", key), key


def _variable(process: int, name: str) -> str:
    try:
        entries = Path(f"/proc/{process}/environ").read_text().split("\0")
    except OSError:  # it has ended
        return ""
    return dict(entry.partition("=")[::2] for entry in entries).get(name, "")
