"""`--secure`: every process of a job gets its key, by a way on which nobody else sees it."""

from __future__ import annotations

import re
import sys

import pytest
from kvstore_ext.launcher.job_key import NAME, key_of_tasks

from .jobs import PULLED, TRAIN, Job
from .keys import assert_one_key, keys
from .sshd import Sshd

KEY = "0123456789abcdef" * 4


def by_ssh(sshd: Sshd) -> list[str]:
    return ["-H", sshd.hostfile(), "--interface", "lo", f"--launcher-options=-F {sshd.config}"]


def test_on_this_host(job: Job) -> None:
    assert_one_key(keys(job, "--secure"))


def test_without_it_there_is_none(job: Job) -> None:
    assert keys(job) == {""}


def test_by_ssh(job: Job, sshd: Sshd) -> None:
    assert_one_key(keys(job, "--secure", *by_ssh(sshd)))
    assert job.errors[0].endswith("; encrypted")


def test_by_ssh_without_it_a_line_says_what_it_would_give(job: Job, sshd: Sshd) -> None:
    assert keys(job, *by_ssh(sshd)) == {""}
    assert job.errors[0].endswith("; not encrypted, which --secure would do")


def test_by_ssh_with_a_key_of_the_users(job: Job, sshd: Sshd) -> None:
    assert keys(job, *by_ssh(sshd), environment={NAME: KEY}) == {KEY}


def test_the_key_of_tasks_is_not_their_token() -> None:
    assert key_of_tasks("one") != key_of_tasks("other")
    assert "one" not in key_of_tasks("one")


@pytest.mark.parametrize(
    ("arguments", "key", "message"),
    [
        ([], "open sesame", f"{NAME} must be 64 hexadecimal digits; --secure makes a key"),
        (["--secure"], KEY[1:], f"{NAME} must be 64 hexadecimal digits"),
        (["--launcher", "mpi"], KEY, f"{NAME} is set; with --launcher mpi only --secure makes a "),
        (["--env", f"{NAME}={KEY}"], None, f"{NAME} would be seen on the command line"),
        (["--env-server", f"{NAME}:{KEY}"], None, f"{NAME} would be seen on the command line"),
    ],
)
def test_what_is_refused(job: Job, arguments: list[str], key: str | None, message: str) -> None:
    environment = {} if key is None else {NAME: key}
    assert job.run(*arguments, "-n", "1", "true", environment=environment) == 2
    assert message in job.errors[-1]
    assert not any(secret in line for line in job.errors for secret in (KEY[1:], "sesame"))


def test_a_dry_run_says_it_and_not_the_key(job: Job) -> None:
    assert job.run("--dry-run", "-n", "1", "true", environment={NAME: KEY}) == 0
    assert f"  all: {NAME}, a secret" in job.lines
    assert KEY not in "\n".join(job.lines)


def test_a_store_trains(job: Job) -> None:
    (job.directory / "train.py").write_text(TRAIN)
    arguments = ["--secure", "-n", "1", "-s", "2", sys.executable, "train.py"]
    assert job.run(*arguments) == 0, job.errors
    assert PULLED in job.lines
    said = [line for line in job.lines if "encrypts with the job's key" in line]
    assert len(said) == 4
    assert len({re.search("job's key (\\w{8})", line)[1] for line in said}) == 1
