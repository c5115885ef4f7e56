"""Command lines for MXNet's tools/launch.py and dmlc-core's tracker work, or say what to write."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvstore_ext.launcher.dmlc_options import REPLACED
from kvstore_ext.launcher.options import parse

from tests.support.system_packages import need

from .jobs import Job
from .sshd import HOSTS, Sshd


def test_further_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMED", "here")
    file = tmp_path / "hosts"
    file.write_text("one\n")
    options = parse(
        [
            *("--cluster", "ssh", "--host-file", str(file), "--num-workers", "2"),
            *("--num-servers", "3", "--host-ip", "10.0.0.1", "--scheduler-port", "9000"),
            *("--sync-dst-dir", "~/work", "--env", "NAMED", "--env-server", "A:b:c"),
            *("--env-worker", "A:d=e", "true"),
        ]
    )
    assert (options.launcher, options.hosts[0].name) == ("ssh", "one")
    assert (options.workers, options.servers, options.port) == (2, 3, 9000)
    assert options.environment == {"NAMED": "here", "DMLC_PS_ROOT_URI": "10.0.0.1"}
    assert options.role_environment == {"server": {"A": "b:c"}, "worker": {"A": "d=e"}}
    assert options.sync_dst_dir == "work"
    assert parse(["--host-ip", "1", "--scheduler-ip", "2", "-n", "1", "true"]).environment == {
        "DMLC_PS_ROOT_URI": "2"
    }


def test_the_cluster_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DMLC_SUBMIT_CLUSTER", "mpi")
    assert parse(["-n", "1", "true"]).launcher == "mpi"
    assert parse(["-n", "1", "--launcher", "local", "true"]).launcher == "local"
    monkeypatch.setenv("DMLC_SUBMIT_CLUSTER", "")
    assert parse(["-n", "1", "true"]).launcher == "local"


@pytest.mark.parametrize("option", REPLACED)
def test_what_replaces_an_option(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (["-n", "1", option, "1g", "true"], [f"{option}=1g", "-n", "1", "true"]):
        with pytest.raises(SystemExit) as exit:
            parse(line)
        assert exit.value.code == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith(f"kvstore-launch: error: {option} is an option of MXNet's launcher")
        assert REPLACED[option] in said


def sync(job: Job, sshd: Sshd, destination: str, *arguments: str) -> int:
    hosts = ["-H", sshd.hostfile(), "--interface", "lo", f"--launcher-options=-F {sshd.config}"]
    hosts += ["--no-secure", "--sync-dst-dir", destination]
    return job.run(*hosts, "-n", "2", "-s", "1", *arguments)


def test_the_working_directory_is_copied(job: Job, sshd: Sshd) -> None:
    need("rsync")
    (job.directory / "part").mkdir()
    (job.directory / "part" / "file").write_text("content\n")
    destination = job.directory.parent / f"{job.directory.name} copied" / "deep"
    worker = ["sh", "-c", "pwd; cat part/file"]
    assert sync(job, sshd, str(destination), "--server-command", "pwd", *worker) == 0, job.errors
    for name in ("worker 0", "worker 1", "server 0", "scheduler 0"):
        assert f"[{name}] {destination}" in job.lines
    assert "[worker 1] content" in job.lines
    assert not (destination / "logs").exists()  # those are written here


def test_a_directory_that_cannot_be_copied(job: Job, sshd: Sshd) -> None:
    need("rsync")
    assert sync(job, sshd, "/proc/here", "--server-command", "true", "true") == 1
    where = [f"{job.directory} could not be copied to /proc/here on {host}" for host in HOSTS]
    assert any(text in job.errors[1] for text in where)
    assert "rsync ended with exit status " in job.errors[1]
    job.assert_gone()


def test_only_ssh_copies(job: Job) -> None:
    assert job.run("-n", "1", "--sync-dst-dir", "there", "true") == 2
    assert "--sync-dst-dir is for --launcher ssh; found --launcher local" in job.errors[-1]
