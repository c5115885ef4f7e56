"""A job's key: who gets one, and that every process does, by a way on which nobody else sees it."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Callable, Iterator

import pytest
from kvstore_ext.launcher.job_key import NAME, key_of_tasks
from kvstore_ext.launcher.options import parse

from tests.support import forked
from tests.support.fork_desk import ForkDesk

from .jobs import PULLED, STOCK, TRAIN, Job
from .keys import assert_one_key, keys
from .sshd import Sshd

KEY = "0123456789abcdef" * 4
FAIL_AT_FIRST = """
import os

if os.environ["KVSTORE_EXT_ATTEMPT"] == "0":
    raise RuntimeError("as it happens at night")
"""


def by_ssh(sshd: Sshd) -> list[str]:
    return ["-H", sshd.hostfile(), "--interface", "lo", f"--launcher-options=-F {sshd.config}"]


def fingerprints(job: Job) -> list[str]:
    """Returns those of the keys that processes say to encrypt with, one a process."""
    return re.findall("encrypts with the job's key ([0-9a-f]{8})", "\n".join(job.lines))


@contextlib.contextmanager
def training(job: Job, fork: bool = True) -> Iterator[list[str]]:
    """The last arguments of a job that trains: its script is run by forks, if these may do, or
    started as a user starts it."""
    (job.directory / "train.py").write_text(TRAIN)
    if forked.as_users_do or not fork:
        yield [sys.executable, "train.py"]
        return
    with ForkDesk(job.directory / "desk").serve() as desk:
        serve = shlex.join([*desk.command, "-m", "kvstore_ext.server"])
        yield ["--server-command", serve, *desk.command, "train.py"]


def test_on_this_host(job: Job) -> None:
    assert_one_key(keys(job, "--secure"))


def test_without_it_there_is_none(job: Job) -> None:
    assert keys(job) == {""}


def test_by_ssh(job: Job, sshd: Sshd) -> None:
    assert_one_key(keys(job, "--secure", *by_ssh(sshd)))
    end = "; encrypted, if --server-command starts servers of kvstore_ext"
    assert job.errors[0].endswith(end)


def test_by_ssh_with_no_secure_there_is_none(job: Job, sshd: Sshd) -> None:
    assert keys(job, "--no-secure", *by_ssh(sshd)) == {""}
    assert job.errors[0].endswith("; not encrypted (--no-secure)")


@pytest.mark.parametrize(
    ("options", "encrypts", "end"),
    [([], True, "; encrypted"), (["--no-secure"], False, "; not encrypted (--no-secure)")],
    ids=["by default", "no-secure"],
)
def test_a_store_trains_by_ssh(
    job: Job, sshd: Sshd, options: list[str], encrypts: bool, end: str
) -> None:
    # Whoever encrypts does so as a user's process: from importing kvstore_ext on, as no fork does.
    with training(job, fork=not encrypts) as train:
        assert job.run(*by_ssh(sshd), *options, "-n", "1", "-s", "1", *train) == 0, job.errors
    assert PULLED in job.lines
    assert job.errors[0].endswith(end)
    assert len(fingerprints(job)) == 3 * encrypts
    assert len(set(fingerprints(job))) == encrypts


@pytest.mark.usefixtures("quick")
def test_each_attempt_has_a_key_of_its_own(job: Job) -> None:
    """And ends like any other, where its processes encrypt."""
    (job.directory / "train.py").write_text(TRAIN + FAIL_AT_FIRST)
    attempts = ["--secure", "--restarts", "1", "-n", "1", "-s", "1"]
    assert job.run(*attempts, sys.executable, "train.py") == 0, job.errors
    keys_of_attempts = set()
    for logs in (job.log_dir, job.log_dir / "attempt-1"):  # the terminal keeps a failure's for last
        said = "".join(log.read_text() for log in logs.glob("*.log"))
        assert "P3Worker [2.0, 2.0, 2.0]" in said
        (fingerprint,) = set(re.findall("encrypts with the job's key ([0-9a-f]{8})", said))
        keys_of_attempts.add(fingerprint)
    assert len(keys_of_attempts) == 2


def test_a_host_without_the_cipher_says_what_helps(job: Job, sshd: Sshd) -> None:
    """Of OpenSSL it has a file that cannot be loaded."""
    (job.directory / "train.py").write_text(TRAIN)
    for name in ("libcrypto.so.3", "libcrypto.so.1.1"):
        (job.directory / name).write_text("no library")
    arguments = [*by_ssh(sshd), "--env", f"LD_LIBRARY_PATH={job.directory}"]
    assert job.run(*arguments, "-n", "1", "-s", "1", sys.executable, "train.py") == 1
    said = "\n".join(job.errors)
    assert re.search(rf"{NAME} is set, but this \w+ cannot encrypt: neither libcrypto", said)
    assert "install OpenSSL 1.1.1 or newer" in said
    assert "kvstore-launch --no-secure" in said
    assert PULLED not in job.lines


@pytest.mark.all_only
def test_a_job_encrypts_with_openssl_1_1(job: Job) -> None:
    """It comes with a wheel of psycopg2. Of OpenSSL 3 there is a file that cannot be loaded."""
    download = ["download", "-q", "--no-deps", "--only-binary", ":all:", "-d", str(job.directory)]
    of_then = ["--python-version", "3.9", "--platform", "manylinux2014_x86_64"]
    command = [sys.executable, "-m", "pip", *download, *of_then, "psycopg2-binary==2.9.3"]
    subprocess.run(command, check=True)
    (wheel,) = job.directory.glob("psycopg2_binary-*.whl")
    with zipfile.ZipFile(wheel) as files:
        (library,) = (name for name in files.namelist() if "/libcrypto" in name)
        (job.directory / "libcrypto.so.1.1").write_bytes(files.read(library))
    (job.directory / "libcrypto.so.3").write_text("no library")
    (job.directory / "train.py").write_text(TRAIN)
    arguments = ["--secure", "--env", f"LD_LIBRARY_PATH={job.directory}", "-n", "2", "-s", "2"]
    assert job.run(*arguments, sys.executable, "train.py") == 0, job.errors
    said = "\n".join(job.lines)
    assert said.count("P3Worker [4.0, 4.0, 4.0]") == 2
    assert re.findall(r"by AES-256-GCM of (\S+)", said) == 5 * ["libcrypto.so.1.1"]
    assert len(set(fingerprints(job))) == 1


def test_by_ssh_with_a_key_of_the_users(job: Job, sshd: Sshd) -> None:
    assert keys(job, *by_ssh(sshd), environment={NAME: KEY}) == {KEY}


SERVERS = ["--server-command", "python -c 'import mxnet'"]


@pytest.mark.parametrize("launcher", ["local", "ssh", "mpi", "slurm"])
def test_who_gets_one(launcher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    (tmp_path / "hosts").write_text("one\n")
    hosts = [] if launcher == "local" else ["-H", str(tmp_path / "hosts")]

    def is_secure(*options: str) -> bool:
        return parse([*options, "--launcher", launcher, *hosts, "-n", "1", "true"]).secure

    assert is_secure() == (launcher != "local")
    assert is_secure("--secure")
    assert is_secure("--secure", *SERVERS)
    assert not is_secure("--no-secure")
    assert not is_secure("--no-secure", *SERVERS)


def test_with_a_key_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, KEY)
    for options in ([], ["--secure"], SERVERS):
        asked = parse([*options, "-n", "1", "true"])
        assert (asked.secure, asked.job_key) == (True, KEY)


def test_the_key_of_tasks_is_not_their_token() -> None:
    assert key_of_tasks("one") != key_of_tasks("other")
    assert "one" not in key_of_tasks("one")


@pytest.mark.parametrize(
    ("arguments", "key", "message"),
    [
        ([], "open sesame", f"{NAME} must be 64 hexadecimal digits; --secure makes a key"),
        (["--secure"], KEY[1:], f"{NAME} must be 64 hexadecimal digits"),
        (["--launcher", "mpi"], KEY, f"{NAME} is set; with --launcher mpi the launcher makes the "),
        (["--launcher", "mpi", "--secure"], KEY, f"{NAME} is set; with --launcher mpi the launche"),
        (["--no-secure"], KEY, f"--no-secure: {NAME} is set; unset it, or leave --no-secure out"),
        (["--secure", "--no-secure"], None, "--no-secure: not allowed with argument --secure"),
        (["--launcher", "mpi", *SERVERS], None, "--server-command: say --no-secure for servers of"),
        (["--env", f"{NAME}={KEY}"], None, f"{NAME} would be seen on the command line"),
        (["--env-server", f"{NAME}:{KEY}"], None, f"{NAME} would be seen on the command line"),
    ],
)
def test_what_is_refused(
    refuse: Callable[..., list[str]], arguments: list[str], key: str | None, message: str
) -> None:
    environment = {} if key is None else {NAME: key}
    errors = refuse(*arguments, "-n", "1", "true", environment=environment)
    assert message in errors[-1]
    assert_no_secret_in(errors)


def test_a_malformed_key_is_refused_by_the_command(job: Job) -> None:
    assert job.run("-n", "1", "true", environment={NAME: "open sesame"}) == 2
    assert f"{NAME} must be 64 hexadecimal digits; --secure makes a key" in job.errors[-1]
    assert "Traceback" not in "".join(job.errors)
    assert_no_secret_in(job.errors)


def assert_no_secret_in(errors: list[str]) -> None:
    assert not any(secret in line for line in errors for secret in (KEY[1:], "sesame"))


def test_a_dry_run_says_it_and_not_the_key(job: Job) -> None:
    assert job.run("--dry-run", "-n", "1", "true", environment={NAME: KEY}) == 0
    assert f"  all: {NAME}, a secret" in job.lines
    assert KEY not in "\n".join(job.lines)


@pytest.mark.parametrize("store", ["p3", "dist_sync"])
def test_servers_of_mxnets_own_do_not_train_with_encrypting_workers(job: Job, store: str) -> None:
    """Nor do they wait for each other: a worker says what is wrong."""
    script = job.directory / "train.py"
    script.write_text(TRAIN.replace("p3", store))
    arguments = ["--secure", "--server-command", f"{sys.executable} {STOCK}", "-n", "1", "-s", "1"]
    assert job.run(*arguments, sys.executable, str(script)) == 1, job.errors
    said = "\n".join(job.errors)
    assert "not admitted by the scheduler at" in said
    assert "MXNet's own has not, whose jobs start by kvstore-launch --no-secure" in said


def test_a_store_trains(job: Job) -> None:
    with training(job) as train:
        assert job.run("--secure", "-n", "1", "-s", "2", *train) == 0, job.errors
    assert PULLED in job.lines
    assert len(fingerprints(job)) == 4
    assert len(set(fingerprints(job))) == 1


def test_quiet_leaves_the_fingerprints_to_the_logs(job: Job) -> None:
    with training(job) as train:
        assert job.run("--quiet", "--secure", "-n", "1", *train) == 0, job.errors
    assert job.lines == [PULLED]
    for name in ("worker-0", "server-0", "scheduler-0"):
        assert "encrypts with the job's key" in job.log(name)
