"""`--launcher slurm` under a real Slurm of one node, and the command that it is given."""

from __future__ import annotations

import signal
from typing import Iterator

import pytest
from kvstore_ext.launcher.far_ends import ENTRY, agent_command
from kvstore_ext.launcher.hosts import Host
from kvstore_ext.launcher.slurm import srun_command

from .jobs import STAY, STUBBORN, Job
from .keys import assert_one_key, keys
from .slurmd import serve

OPTIONS = ["--launcher", "slurm", "--interface", "lo", "--start-timeout", "30"]
SECURE, PLAIN = "--secure", "--no-secure"  # one is said, as servers here are shell commands


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    yield from serve(tmp_path_factory.mktemp("slurm"))


def test_roles_and_failing_worker(job: Job, slurm: dict[str, str]) -> None:
    worker = 'echo "$DMLC_ROLE $KVSTORE_EXT_LAUNCH_RANK $SLURM_PROCID"; '
    worker += "[ $KVSTORE_EXT_LAUNCH_RANK = 0 ] || exit 3; sleep 1000"
    arguments = ["-n", "2", "-s", "1", "--server-command", STAY, "sh", "-c", worker]
    assert job.run(*OPTIONS, PLAIN, *arguments, environment=slurm) == 3
    assert "[worker 1] worker 1 1" in job.lines
    assert job.errors[1].startswith("launch: worker 1 on ")
    assert job.errors[1].endswith(" ended with exit status 3")
    assert job.errors[3:] == ["    worker 1 1"]
    job.assert_gone()


def test_one_key(job: Job, slurm: dict[str, str]) -> None:
    assert_one_key(keys(job, *OPTIONS, SECURE, environment=slurm))


def test_success(job: Job, slurm: dict[str, str]) -> None:
    arguments = ["-n", "2", "--server-command", "echo served", "echo", "worked"]
    assert job.run(*OPTIONS, PLAIN, *arguments, environment=slurm) == 0
    assert sorted(line for line in job.lines if not line.startswith("[srun]")) == [
        "[scheduler 0] served",
        "[server 0] served",
        "[server 1] served",
        "[worker 0] worked",
        "[worker 1] worked",
    ]
    job.assert_gone()


def test_nothing_outlives_the_launcher(job: Job, slurm: dict[str, str]) -> None:
    arguments = ["-n", "1", "--server-command", STAY, "sh", "-c", STUBBORN]
    job.start(*OPTIONS, PLAIN, *arguments, environment=slurm)
    for name in ("worker 0", "server 0", "scheduler 0"):
        job.wait_for_line(f"[{name}] up")
    job.signal(signal.SIGKILL)
    assert job.wait() == -9
    job.assert_gone()


def test_srun_that_fails(job: Job, slurm: dict[str, str]) -> None:
    arguments = ["--launcher-options=--partition=missing --quiet", "-n", "1", "true"]
    assert job.run(*OPTIONS, PLAIN, *arguments, environment=slurm) == 1
    assert job.errors[1] == "launch: srun on localhost ended with exit status 1"
    assert any("invalid partition" in line for line in job.errors[2:])


def test_command() -> None:
    hosts = [Host("one"), Host("two")]
    join = agent_command("py", "slurm", ["10.0.0.1:4000", "10.1.0.1:4000"], secure=False)
    assert srun_command(5, hosts, ["--partition=gpu"], join) == [
        *["srun", "--ntasks=5", "--distribution=cyclic", "--overcommit", "--cpu-bind=none"],
        *["--kill-on-bad-exit=0", "--wait=0", "--export=ALL", "--input=none"],
        *["--nodes=2", "--nodelist=one,two", "--partition=gpu"],
        *["py", "-S", ENTRY, "--join", "slurm", "10.0.0.1:4000,10.1.0.1:4000"],
    ]
    assert "--nodelist=" not in " ".join(srun_command(5, [], [], join))
