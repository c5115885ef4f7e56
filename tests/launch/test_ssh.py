"""`--launcher ssh` against a real OpenSSH server on two addresses of this host."""

from __future__ import annotations

import re
import signal
import socket
import sys
from pathlib import Path

import pytest

from .jobs import STAY, STOCK, STUBBORN, Job
from .patched import launcher_with
from .sshd import HOSTS, Sshd
from .stand_ins import stand_ins
from .test_restarts import SERVE


def options(sshd: Sshd) -> list[str]:
    options = ["-H", sshd.hostfile(), "--interface", "lo", f"--launcher-options=-F {sshd.config}"]
    return [*options, "--no-secure"]  # what stands for servers here has no use for a key


def test_hosts_environment_and_directory(job: Job, sshd: Sshd) -> None:
    worker = 'set -- $SSH_CONNECTION; echo "$3 $REMOTE $MXNET_AMBIENT $OTHER $GIVEN $PWD"'
    environment = {"MXNET_AMBIENT": "along", "OTHER": "not", "DMLC_NODE_HOST": "10.9.9.9"}
    arguments = ["-n", "3", "-s", "2", "--env", "GIVEN=a  \"b\" 'c'", "--server-command", "env"]
    status = job.run(*options(sshd), *arguments, "sh", "-c", worker, environment=environment)
    assert status == 0, job.errors
    for rank, host in enumerate((HOSTS[0], HOSTS[1], HOSTS[0])):
        expected = f"{host} yes along  a  \"b\" 'c' {job.directory}"
        assert f"[worker {rank}] {expected}" in job.lines
        assert job.log(f"worker-{rank}") == expected + "\n"
    for name, host in (("server-0", HOSTS[0]), ("server-1", HOSTS[1]), ("scheduler-0", HOSTS[0])):
        variables = dict(line.split("=", 1) for line in job.log(name).splitlines())
        assert variables["SSH_CONNECTION"].split()[2] == host
        assert variables["DMLC_INTERFACE"] == "lo"
        assert variables["DMLC_PS_ROOT_URI"] == "127.0.0.1"
        assert variables["DMLC_ROLE"] == name.split("-")[0]
        assert variables["DMLC_NODE_HOST"] == "127.0.0.1"


def test_failing_worker_on_another_host(job: Job, sshd: Sshd) -> None:
    worker = "[ $KVSTORE_EXT_LAUNCH_RANK = 0 ] || { echo why; kill -KILL $$; }; sleep 1000"
    arguments = ["-n", "2", "--server-command", STAY, "sh", "-c", worker]
    assert job.run(*options(sshd), *arguments) == 137
    assert job.errors[1:] == [
        f"launch: worker 1 on {HOSTS[1]} was killed by signal 9 (SIGKILL)",
        f"launch: its last lines (all are in {job.log_dir}/worker-1.log):",
        "    why",
    ]
    job.assert_gone()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_nothing_outlives_the_launcher(
    job: Job, sshd: Sshd, number: signal.Signals, status: int
) -> None:
    worker = STUBBORN if number == signal.SIGKILL else STUBBORN.replace("trap", "true")
    arguments = ["-n", "2", "-s", "1", "--server-command", STAY, "sh", "-c", worker]
    job.start(*options(sshd), *arguments)
    for name in ("worker 0", "worker 1", "server 0", "scheduler 0"):
        job.wait_for_line(f"[{name}] up")
    job.signal(number)
    assert job.wait() == status
    job.assert_gone()


# Of supervisors.
IMPATIENT = "main.SILENCE = 3.0"


def test_nothing_outlives_the_launchers_host(job: Job, sshd: Sshd) -> None:
    """A host without power says nothing and takes nothing, and no connection ends."""
    job.entry = launcher_with(IMPATIENT)
    worker = "sleep 5; echo still up; while [ ! -e stopped ]; do sleep 0.1; done; "
    worker += "[ $KVSTORE_EXT_LAUNCH_RANK = 0 ] || yes | head -c 30000000; sleep 1000"
    job.start(*options(sshd), "-n", "2", "-s", "1", "--server-command", STAY, "sh", "-c", worker)
    for rank in (0, 1):
        job.wait_for_line(f"[worker {rank}] still up")
    job.signal(signal.SIGSTOP)
    (job.directory / "stopped").touch()
    job.assert_gone(but=lambda command: "launcher import" in command or command.startswith("ssh "))


def test_host_that_refuses(job: Job, sshd: Sshd) -> None:
    hostfile = job.directory / "refusing"
    hostfile.write_text(f"{HOSTS[0]}:{sshd.port}\n127.0.0.3:{sshd.port}\n")
    arguments = ["-n", "2", "-s", "1", "--server-command", STAY, "sleep", "1000"]
    assert job.run(*options(sshd), "-H", str(hostfile), *arguments) == 255
    assert job.errors[1:] == [
        "launch: worker 1 on 127.0.0.3 could not be started: ssh ended with exit status 255; "
        f"try: ssh -F {sshd.config} -o BatchMode=yes -o ControlPath=none -p {sshd.port} 127.0.0.3 "
        "true",
        f"launch: its last lines (all are in {job.log_dir}/worker-1.log):",
        f"    ssh: connect to host 127.0.0.3 port {sshd.port}: Connection refused",
    ]
    job.assert_gone()


@pytest.mark.parametrize(
    ("limit", "status", "message"),
    [
        ("--launcher-options=-o ConnectTimeout=1", 255, "ssh ended with exit status 255"),
        ("--start-timeout=1", 1, "did not start within 1 s"),
    ],
)
def test_host_that_does_not_answer(job: Job, limit: str, status: int, message: str) -> None:
    with socket.socket() as silent:
        silent.bind((HOSTS[0], 0))
        silent.listen(8)
        hostfile = job.directory / "hosts"
        hostfile.write_text(f"{HOSTS[0]}:{silent.getsockname()[1]}\n")
        arguments = ["-n", "1", "-H", str(hostfile), "--wait-notice", "0.4", limit]
        assert job.run(*arguments, "sleep", "1000") == status
    roles = ("worker 0", "server 0", "scheduler 0")
    missing = ", ".join(f"{role} on {HOSTS[0]}" for role in roles)
    assert re.fullmatch(
        rf"launch: after [\d.]+ s these have not started: {re.escape(missing)}", job.errors[1]
    )
    error = next(line for line in job.errors[1:] if "have not started" not in line)
    assert f"on {HOSTS[0]} " in error
    assert message in error
    assert job.processes() == {}


def test_a_users_tunnels_are_not_each_process_own(job: Job, sshd: Sshd, tmp_path: Path) -> None:
    """Only one of them could have the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "with_tunnel"
    tunnel = f"LocalForward {port} localhost:{port}\nExitOnForwardFailure yes\n"
    config.write_text(f"Host *\n{tunnel}\n{sshd.config.read_text()}")
    arguments = ["-H", sshd.hostfile(), "--interface", "lo", f"--launcher-options=-F {config}"]
    assert job.run(*arguments, "-n", "4", "-s", "1", *SERVE, "--no-secure", "echo", "up") == 0
    assert sorted(job.lines) == [f"[worker {rank}] up" for rank in range(4)]


def test_a_login_shell_that_does_not_end_its_line(job: Job, tmp_path: Path) -> None:
    """What it says stands in the log, on a line of its own."""
    environment = stand_ins(tmp_path / "programs")
    ssh = tmp_path / "programs" / "ssh"
    ssh.write_text(ssh.read_text().replace("exec sh", "printf 'one\\nhello'; exec sh"))
    (job.directory / "hosts").write_text("there\n")
    arguments = ["-n", "1", "-H", "hosts", "--interface", "lo", "--server-command", "true"]
    arguments += ["--no-secure", "echo", "up"]
    assert job.run(*arguments, environment=environment) == 0, job.errors
    assert job.log("worker-0") == "one\nhello\nup\n"


def test_interpreter_that_is_not_there(job: Job, sshd: Sshd) -> None:
    assert job.run(*options(sshd), "-n", "1", "--python", "/missing/python", "true") == 127
    assert "on 127.0.0.1 could not be started: ssh ended with exit status 127" in job.errors[1]
    assert "/missing/python" in job.errors[3]


def test_stock_mxnet(job: Job, sshd: Sshd) -> None:
    arguments = ["-n", "2", "-s", "1", "--server-command", f"{sys.executable} {STOCK}"]
    assert job.run(*options(sshd), *arguments, sys.executable, STOCK) == 0, job.errors
    pulled = [line for line in job.lines if "pulled" in line]
    assert sorted(pulled) == [
        f"[worker {rank}] {rank} of 2 pulled [3.0, 3.0, 3.0]" for rank in range(2)
    ]
    job.assert_gone()
