"""The commands that start the launcher do the same, and need neither kvstore_ext nor mxnet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .jobs import LAUNCH, LIMIT, PULLED, STAY, TRAIN, Job

ENTRIES = {
    "command": [str(Path(sys.executable).with_name("kvstore-launch"))],
    "module": [sys.executable, "-m", "kvstore_ext.launcher"],
    "checkout": [sys.executable, str(LAUNCH)],
}


RUNNER = [sys.executable, "-m", "kvstore_run"]
ANSWERS = {
    "dry run": [*ENTRIES["checkout"], "-n", "1", "--dry-run", "true"],
    "check": [*RUNNER, "--check"],
    "list": [*RUNNER, "--list"],
}


@pytest.fixture(params=ENTRIES)
def entry(request: pytest.FixtureRequest, job: Job) -> list[str]:
    """A way to start the launcher, by which the job is then started."""
    job.entry = ENTRIES[request.param]
    return job.entry


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize(
    "entry",
    [pytest.param(name, marks=[pytest.mark.all_only] * (name != "command")) for name in ENTRIES],
    indirect=True,
)
def test_a_job_from_an_empty_directory(job: Job, tmp_path_factory: pytest.TempPathFactory) -> None:
    script = tmp_path_factory.mktemp("scripts") / "train.py"
    script.write_text(TRAIN)
    assert list(job.directory.iterdir()) == []
    assert job.run("-n", "1", "-s", "1", sys.executable, str(script)) == 0, job.errors
    assert job.lines == [PULLED]
    assert job.processes() == {}


@pytest.mark.usefixtures("entry")
def test_nothing_of_mxnet_is_in_the_launcher_or_its_environment(job: Job) -> None:
    arguments = ["-n", "1", "--server-command", STAY, "sh", "-c", "env; echo up; exec sleep 1000"]
    job.start(*arguments)
    for name in ("worker 0", "server 0", "scheduler 0"):
        job.wait_for_line(f"[{name}] up")
    # The launcher, three supervisors and what they look after, which may just become `sleep`.
    limit = time.monotonic() + LIMIT
    while len(processes := job.processes()) < 7 and time.monotonic() < limit:
        time.sleep(0.05)
    assert len(processes) == 7
    for process, command in processes.items():
        assert "mxnet" not in Path(f"/proc/{process}/maps").read_text(), command
    # What importing kvstore_ext sets would reach the workers.
    variables = [line for line in job.lines if line.startswith("[worker 0] MXNET_")]
    assert variables == ["[worker 0] MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN=1"]
    job.signal(signal.SIGTERM)
    assert job.wait() == 143
    assert job.processes() == {}


@pytest.mark.parametrize("name", ["command", "checkout"])
def test_no_part_imports_the_packages(job: Job, name: str, tmp_path: Path) -> None:
    for package in ("mxnet", "kvstore_ext"):
        (tmp_path / f"{package}.py").write_text(f"raise SystemExit('{package} was imported')")
    job.entry = ENTRIES[name]
    environment = {"PYTHONPATH": str(tmp_path)}
    arguments = ["-n", "2", "-s", "1", "--server-command", "true", "echo", "ran"]
    assert job.run(*arguments, environment=environment) == 0, job.errors
    assert sorted(job.lines) == ["[worker 0] ran", "[worker 1] ran"]


def test_far_ends(entry: list[str], tmp_path: Path) -> None:
    supervisor = _run([*entry, "--supervise"], tmp_path)
    assert supervisor.stdout.startswith('kvstore_ext supervisor 1\n{"host": ')
    assert (supervisor.returncode, supervisor.stderr) == (0, "")
    agent = _run([*entry, "--join", "slurm", "127.0.0.1:1"], tmp_path)
    assert agent.stderr == "launch: none of SLURM_PROCID is in the environment of this task\n"
    assert (agent.returncode, agent.stdout) == (1, "")


def _run(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """Runs a far end that finds nobody to talk to."""
    return subprocess.run(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


@pytest.mark.parametrize("question", ANSWERS)
def test_an_answer_that_nobody_reads(question: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        ANSWERS[question],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=LIMIT,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")
