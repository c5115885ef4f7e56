"""--hosts-needed: which hosts of the hostfile a job has, and which of them are replaced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .jobs import REPORT, Job
from .patched import IMPATIENT, QUICK, launcher_with
from .sshd import HOSTS, Sshd
from .stand_ins import stand_ins
from .test_restarts import ATTEMPT, SERVE


@pytest.mark.usefixtures("quick")
def test_a_host_that_is_gone_is_replaced(job: Job, sshd: Sshd) -> None:
    hostfile = job.directory / "some"
    gone = f"127.0.0.3:{sshd.port}"
    hostfile.write_text("\n".join([f"{HOSTS[0]}:{sshd.port}", gone, f"{HOSTS[1]}:{sshd.port}"]))
    arguments = ["-H", str(hostfile), "--interface", "lo", f"--launcher-options=-F {sshd.config}"]
    arguments += ["-n", "2", "-s", "1", *SERVE, "--no-secure"]
    arguments += ["--restarts", "1", "--hosts-needed", "2"]
    worker = "set -- $SSH_CONNECTION; echo $3"
    assert job.run(*arguments, "sh", "-c", worker) == 0, job.errors
    shown = [line for line in job.lines if "refused" not in line]
    assert sorted(shown) == [f"[worker {rank}] {host}" for rank, host in enumerate(HOSTS)]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "lacking",
    [
        "echo 'sh: python: not found' >&2; exit 127",
        "echo 'python: cannot open file' >&2; exit 2",
        'cd /; exec sh -c "$3"',
    ],
    ids=["interpreter", "package", "directory"],
)
def test_a_host_that_no_longer_has_what_it_runs_is_replaced(
    job: Job, tmp_path: Path, lacking: str
) -> None:
    """It has come back without a file system, say."""
    (job.directory / "some").write_text("first\nsecond\nthird\n")
    (job.directory / "there").mkdir()
    environment = stand_ins(tmp_path / "programs")
    ssh = tmp_path / "programs" / "ssh"
    begin, end = ssh.read_text().split("exec sh -c")
    without = f"if [ $host = second ] && [ -e failed ]; then {lacking}; fi\n"
    ssh.write_text(f"{begin}{without}exec sh -c{end}")
    worker = "[ $KVSTORE_EXT_ATTEMPT -gt 0 ] || { touch ../failed; exit 3; }; "
    worker += "echo attempt $KVSTORE_EXT_ATTEMPT on $host"
    arguments = ["-H", "some", "--interface", "lo", "--sync-dst-dir", "there", "-n", "2", *SERVE]
    arguments += ["--restarts", "2", "--hosts-needed", "2", "--no-secure", "sh", "-c", worker]
    assert job.run(*arguments, environment=environment) == 0, job.errors
    shown = sorted(line for line in job.lines if "attempt 2" in line)
    assert shown == ["[worker 0] attempt 2 on first", "[worker 1] attempt 2 on third"]


@pytest.mark.parametrize("sync", [[], ["--sync-dst-dir", "there"]], ids=["ssh", "rsync"])
def test_a_host_that_is_not_reached_is_replaced(job: Job, tmp_path: Path, sync: list[str]) -> None:
    hostfile = job.directory / "some"
    hostfile.write_text("first\ngone\nsecond\n")
    (job.directory / "there").mkdir()
    arguments = ["-H", str(hostfile), "--interface", "lo", *sync, "-n", "2", "-s", "1", *SERVE]
    arguments += ["--restarts", "1", "--hosts-needed", "2", "--no-secure", "sh", "-c", "echo up"]
    environment = stand_ins(tmp_path / "programs")
    assert job.run(*arguments, environment=environment) == 0, job.errors
    assert "launch: restart 1 of 1 in 1 s" in job.errors
    assert "; try: ssh -o BatchMode=yes -o ControlPath=none gone true" in job.errors[1]
    assert sorted(line for line in job.lines if "up" in line) == ["[worker 0] up", "[worker 1] up"]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("status", "attempts"), [(12, 2), (1, 1)], ids=["broken", "wrong"])
def test_a_copy_that_breaks_off_is_tried_again(
    job: Job, tmp_path: Path, status: int, attempts: int
) -> None:
    (job.directory / "there").mkdir()
    (job.directory / "some").write_text("first\n")
    environment = stand_ins(tmp_path / "programs")
    with (tmp_path / "programs" / "rsync").open("a") as rsync:
        rsync.write(f"[ $(wc -l <copies) -gt 1 ] || exit {status}\n")
    arguments = ["-H", "some", "--interface", "lo", "--sync-dst-dir", "there", "-n", "1", *SERVE]
    arguments += ["--restarts", "3", "--no-secure", "echo", "up"]
    assert (job.run(*arguments, environment=environment) == 0) == (attempts == 2), job.errors
    assert len((job.directory / "copies").read_text().splitlines()) == attempts
    assert f"rsync ended with exit status {status}" in job.errors[1]


def test_no_more_hosts_are_used_than_are_needed(job: Job, tmp_path: Path) -> None:
    """Without --restarts, too: what --dry-run shows is what is started."""
    (job.directory / "some").write_text("first\ngone\n")
    arguments = ["-H", "some", "--interface", "lo", "-n", "2", "-s", "1", *SERVE, "--no-secure"]
    arguments += ["--hosts-needed", "1", "echo", "up"]
    assert job.run(*arguments, environment=stand_ins(tmp_path / "programs")) == 0, job.errors
    assert sorted(job.lines) == ["[worker 0] up", "[worker 1] up"]


def test_an_srun_that_starts_nothing_has_no_host_replaced(job: Job, tmp_path: Path) -> None:
    """It waits in a queue, say, and nobody knows which of the hosts it waits for."""
    job.entry = launcher_with(QUICK, IMPATIENT)
    environment = stand_ins(tmp_path / "programs")
    srun = tmp_path / "programs" / "srun"
    srun.write_text('#!/bin/sh\necho "$@" >>calls\nexec sleep 1000\n')
    srun.chmod(0o755)
    (job.directory / "some").write_text("first\nsecond\n")
    arguments = ["--launcher", "slurm", "-H", "some", "--interface", "lo", "-n", "1", *SERVE]
    arguments += ["--no-secure", "--start-timeout", "1", "--restarts", "1", "--hosts-needed", "1"]
    assert job.run(*arguments, "true", environment=environment) == 1
    calls = (job.directory / "calls").read_text()
    assert re.findall(r"--nodelist=(\S+)", calls) == ["first", "first"]


@pytest.mark.usefixtures("quick")
def test_a_host_that_others_miss_is_replaced(job: Job, tmp_path: Path) -> None:
    """Its connection ends, and a worker that waits for it has said whom it waits for."""
    hostfile = job.directory / "some"
    hostfile.write_text("first\nsecond\nthird\n")
    reason = '{\\"joining\\": true, \\"failed\\": \\"worker 0: no sign of life from worker 1\\"}'
    first = f"""
        if [ $KVSTORE_EXT_LAUNCH_RANK = 1 ]
        then touch there; kill -9 $PPID; sleep 1000
        else
            until [ -e there ]; do sleep 0.1; done
            {REPORT} "{reason}"; sleep 2; exit 1
        fi
    """
    worker = f"{ATTEMPT} [ $KVSTORE_EXT_ATTEMPT = 1 ] || {{ {first} }}"
    arguments = ["-H", str(hostfile), "--interface", "lo", "-n", "2", "-s", "1", *SERVE]
    arguments += ["--restarts", "1", "--hosts-needed", "2", "--no-secure", "sh", "-c", worker]
    assert job.run(*arguments, environment=stand_ins(tmp_path / "programs")) == 0, job.errors
    assert "worker 1 on second is lost" in "".join(job.errors)
    reached = (tmp_path / "programs" / "reached").read_text().split()
    assert reached.count("third") == reached.count("second") > 0, reached


@pytest.mark.parametrize(
    ("answers", "is_missed", "then"),
    [(False, True, "third"), (True, True, "second"), (False, False, "second")],
    ids=["without power", "hangs", "busy"],
)
def test_a_host_that_others_miss_and_that_does_not_answer_is_replaced(
    job: Job, tmp_path: Path, answers: bool, is_missed: bool, then: str
) -> None:
    """As one without power, of which ssh hears later than others do. Either alone is not enough."""
    job.entry = launcher_with(QUICK, *([] if answers else [IMPATIENT]))
    (job.directory / "some").write_text("first\nsecond\nthird\n")
    reason = '{\\"joining\\": true, \\"failed\\": \\"worker 0: no sign of life from worker 1\\"}'
    stop = "true" if answers else "kill -STOP $PPID"
    tell = f'{REPORT} "{reason}"' if is_missed else "true"
    worker = f"""
        if [ $KVSTORE_EXT_ATTEMPT = 1 ]
        then echo on $host
        elif [ $KVSTORE_EXT_LAUNCH_RANK = 1 ]
        then {stop}; touch there; exec sleep 1000
        else
            until [ -e there ]; do sleep 0.1; done
            {tell}
            exit 1
        fi
    """
    arguments = ["-H", "some", "--interface", "lo", "-n", "2", "-s", "1", *SERVE, "--no-secure"]
    arguments += ["--restarts", "1", "--hosts-needed", "2", "sh", "-c", worker]
    assert job.run(*arguments, environment=stand_ins(tmp_path / "programs")) == 0, job.errors
    shown = sorted(line for line in job.lines if line.startswith("[worker"))
    assert shown == ["[worker 0] on first", f"[worker 1] on {then}"]


@pytest.mark.parametrize(
    ("needed", "found"),
    [("3", "--hosts-needed: found 3, and a hostfile of 2 hosts"), ("1", "slots for only 1")],
)
def test_hosts_that_can_never_be_enough(job: Job, needed: str, found: str) -> None:
    hostfile = job.directory / "hosts"
    hostfile.write_text("one slots=4\ntwo slots=1\n")
    arguments = ["-n", "2", "-H", str(hostfile), "--hosts-needed", needed, "true"]
    assert job.run(*arguments) == 2
    assert found in job.errors[-1]
