"""`--launcher local`: output, environment, failures, and that nothing is left."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from .jobs import DONE, STAY, STOCK, STUBBORN, Job


def test_output_is_prefixed_and_kept(job: Job) -> None:
    worker = 'echo "I am $KVSTORE_EXT_LAUNCH_RANK"; echo "and complain" >/dev/stderr; printf end'
    status = job.run("-n", "2", "-s", "1", "--server-command", "echo serving", "sh", "-c", worker)
    assert status == 0
    assert sorted(job.lines) == [
        "[scheduler 0] serving",
        "[server 0] serving",
        "[worker 0] I am 0",
        "[worker 0] and complain",
        "[worker 0] end",
        "[worker 1] I am 1",
        "[worker 1] and complain",
        "[worker 1] end",
    ]
    assert job.log("worker-0") == "I am 0\nand complain\nend"
    assert job.log("worker-1") == "I am 1\nand complain\nend"
    assert job.log("server-0") == job.log("scheduler-0") == "serving\n"
    assert job.errors[0] == f"launch: workers: 2, servers: 1, logs: {job.log_dir}"
    assert re.fullmatch(DONE, job.errors[1])
    assert len(job.errors) == 2


def test_servers_are_told_whom_to_trust(job: Job) -> None:
    trust = ["--trust", "one", "--trust", "two"]
    assert job.run("-n", "1", *trust, "--server-command", "echo serving", "true") == 0
    assert "[server 0] serving --trust one --trust two" in job.lines


def test_environment(job: Job) -> None:
    status = job.run(
        *["-n", "3", "--env", "DMLC_GIVEN=a = 'b'\n", "--env", "EMPTY=", "--server-command", "env"],
        "env",
        environment={"DMLC_ROLE": "old", "DMLC_PS_ROOT_URI": "10.9.9.9", "AMBIENT": "yes"},
    )
    assert status == 0
    names = [f"worker-{rank}" for rank in range(3)] + [f"server-{rank}" for rank in range(3)]
    ports, jobs = set(), set()
    own_ports: dict[str, list[int]] = {"worker": [], "server": []}
    for name in [*names, "scheduler-0"]:
        role, rank = name.split("-")
        log = job.log(name)
        variables = dict(line.split("=", 1) for line in log.splitlines() if "=" in line)
        assert variables["DMLC_ROLE"] == role
        assert variables["KVSTORE_EXT_LAUNCH_RANK"] == variables["KVSTORE_EXT_LOCAL_RANK"] == rank
        jobs.add(variables["KVSTORE_EXT_JOB"])
        assert variables["DMLC_NUM_WORKER"] == variables["DMLC_NUM_SERVER"] == "3"
        assert variables["DMLC_PS_ROOT_URI"] == variables["DMLC_NODE_HOST"] == "127.0.0.1"
        assert variables["MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN"] == "1"
        assert variables["AMBIENT"] == "yes"
        assert variables["EMPTY"] == ""
        if role != "scheduler":
            own_ports[role].append(int(variables["PORT"]))
        assert "DMLC_GIVEN=a = 'b'\n\n" in log
        ports.add(int(variables["DMLC_PS_ROOT_PORT"]))
    assert len(ports) == len(jobs) == 1
    # MXNet's scheduler gives ranks by ports.
    assert all(by_rank == sorted(by_rank) for by_rank in own_ports.values())
    assert len({*own_ports["worker"], *own_ports["server"], *ports}) == 7


@pytest.mark.parametrize("by_option", [True, False])
def test_bulk_size_of_the_user_stays(job: Job, by_option: bool) -> None:
    name = "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN"
    options = ["--env", f"{name}=7"] if by_option else []
    environment = {} if by_option else {name: "7"}
    arguments = ["-n", "1", *options, "--server-command", "true", "sh", "-c", f"echo ${name}"]
    assert job.run(*arguments, environment=environment) == 0
    assert job.lines == ["[worker 0] 7"]


def test_default_servers_and_no_import_of_the_packages(job: Job) -> None:
    packages = job.directory / "packages"
    packages.mkdir()
    for name in ("mxnet", "kvstore_ext"):
        (packages / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')")
    server = "import os, sys; print(os.environ['DMLC_ROLE'], *sys.argv[1:])"
    (packages / "kvstore_run.py").write_text(server)
    environment = {"PYTHONPATH": str(packages)}
    assert job.run("-n", "1", "--", "true", environment=environment) == 0
    assert sorted(job.lines) == [
        "[scheduler 0] scheduler --serve",
        "[server 0] server --serve",
    ]


def test_failing_worker(job: Job) -> None:
    worker = 'seq 100 130; echo "rank $KVSTORE_EXT_LAUNCH_RANK"; '
    worker += "[ $KVSTORE_EXT_LAUNCH_RANK != 1 ] || exit 7; sleep 1000"
    assert job.run("-n", "3", "-s", "1", "--server-command", STAY, "sh", "-c", worker) == 7
    assert job.errors[1:] == [
        "launch: worker 1 on localhost ended with exit status 7",
        f"launch: its last lines (all are in {job.log_dir}/worker-1.log):",
        *[f"    {number}" for number in range(112, 131)],
        "    rank 1",
    ]
    job.assert_gone()


def test_server_killed_by_a_signal(job: Job) -> None:
    server = "[ $DMLC_ROLE$KVSTORE_EXT_LAUNCH_RANK != server1 ] || kill -SEGV $$; sleep 1000"
    server_command = f"sh -c '{server}'"
    assert job.run("-n", "1", "-s", "2", "--server-command", server_command, "sleep", "1000") == 139
    assert job.errors[1:] == ["launch: server 1 on localhost was killed by signal 11 (SIGSEGV)"]
    job.assert_gone()


@pytest.mark.parametrize(
    ("command", "status", "reason"),
    [
        ("no_such_program", 127, "No such file or directory: no_such_program"),
        ("./logs", 126, "Permission denied: ./logs"),
    ],
)
def test_command_that_cannot_be_run(job: Job, command: str, status: int, reason: str) -> None:
    """Of servers, say: whether there is the workers' program is looked at before the start."""
    assert job.run("-n", "1", "--server-command", command, "sleep", "1000") == status
    [said] = job.errors[1:]
    where = r"launch: (server|scheduler) 0 on localhost could not be started: "
    assert re.fullmatch(where + re.escape(reason), said)
    job.assert_gone()


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
)
def test_nothing_outlives_the_launcher(job: Job, number: signal.Signals, status: int) -> None:
    worker = STUBBORN if number == signal.SIGKILL else STUBBORN.replace("trap", "true")
    job.start("-n", "1", "--server-command", STAY, "sh", "-c", worker)
    for name in ("worker 0", "server 0", "scheduler 0"):
        job.wait_for_line(f"[{name}] up")
    assert len(job.processes()) >= 8
    job.signal(number)
    assert job.wait() == status
    if number == signal.SIGKILL:
        assert len(job.errors) == 1
    else:
        assert job.errors[1:] == [f"launch: {number.name} has ended the job"]
        # The launcher itself has waited for the end of them all.
        assert job.processes() == {}
    job.assert_gone()


@pytest.mark.parametrize("name", ["HUP", "INT"])
def test_a_signal_that_was_ignored_before_ends_no_job(job: Job, name: str) -> None:
    """nohup has a launcher begin so, and a shell's script one behind which it has put `&`."""
    job.entry = ["sh", "-c", f"trap '' {name}; exec \"$@\"", "sh", *job.entry]
    worker = "echo up; until [ -e go ]; do sleep 0.1; done; echo went on"
    job.start("-n", "1", "--server-command", "true", "sh", "-c", worker)
    job.wait_for_line("[worker 0] up")
    job.signal(signal.Signals[f"SIG{name}"])
    (job.directory / "go").touch()
    assert job.wait() == 0, job.errors
    assert "[worker 0] went on" in job.lines


def test_descendants_do_not_outlive_their_worker(job: Job) -> None:
    worker = "setsid sleep 1000 & sleep 1000 & echo done"
    assert job.run("-n", "2", "--server-command", "true", "sh", "-c", worker) == 0
    assert sorted(job.lines) == ["[worker 0] done", "[worker 1] done"]
    assert job.processes() == {}


def test_servers_that_stay_are_ended(job: Job) -> None:
    arguments = ["-n", "1", "--grace", "0.5", "--server-command", STAY]
    assert job.run(*arguments, "true") == 0
    stays = "is still there 0.5 s after the last worker and will be ended"
    assert job.errors[1:-1] == [
        f"launch: server 0 on localhost {stays}",
        f"launch: scheduler 0 on localhost {stays}",
    ]
    assert re.fullmatch(DONE, job.errors[-1])
    assert job.processes() == {}


def test_nobody_reads_the_output(job: Job) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    job.start("-n", "1", "--server-command", "sleep 1000", "yes", stdout=writing)
    os.close(writing)
    assert job.wait() == 1
    reason = "printed what could not be written: [Errno 32] Broken pipe"
    assert job.errors[1] == f"launch: worker 0 on localhost {reason}"
    assert job.processes() == {}


def test_what_a_killed_supervisor_leaves_is_removed_by_the_next(job: Job) -> None:
    with tempfile.TemporaryDirectory() as place:
        environment = {"TMPDIR": place}
        # Only then: the server's supervisor, too, removes what it finds as it starts.
        await_server = f"while [ ! -e {job.directory}/up ]; do sleep 0.1; done"
        server = f"sh -c 'touch {job.directory}/up; sleep 1000'"
        arguments = ["-n", "1", "--server-command", server, "sh", "-c"]
        worker = f"{await_server}; kill -9 $PPID; sleep 1000"
        assert job.run(*arguments, worker, environment=environment) == 1
        lost = "is lost: the connection to its supervisor has ended"
        assert job.errors[1] == f"launch: worker 0 on localhost {lost}"
        [left] = os.listdir(place)
        assert left.startswith("kvstore_ext-")
        servers = ["--server-command", "true"]
        assert job.run("-n", "1", *servers, "true", environment=environment) == 0
        assert os.listdir(place) == []


def test_stock_mxnet(job: Job) -> None:
    arguments = ["-n", "2", "-s", "1", "--server-command", f"{sys.executable} {STOCK}"]
    assert job.run(*arguments, sys.executable, STOCK) == 0, job.errors
    pulled = [line for line in job.lines if "pulled" in line]
    assert sorted(pulled) == [
        f"[worker {rank}] {rank} of 2 pulled [3.0, 3.0, 3.0]" for rank in range(2)
    ]
    assert re.fullmatch(r"launch: 2 workers and 1 server on 1 host after [\d.]+ s", job.errors[1])
    assert re.fullmatch(DONE, job.errors[2])
    assert len(job.errors) == 3
    assert job.processes() == {}


def test_default_log_directory(job: Job, tmp_path: Path) -> None:
    job.run("--log-dir", "", "-n", "1", "--server-command", "true", "echo", "hello")
    said = re.fullmatch(r"launch: workers: 1, servers: 1, logs: (.*)", job.errors[0])
    assert said is not None
    assert Path(said.group(1)).parent == tmp_path / "launch-logs"
    assert (Path(said.group(1)) / "worker-0.log").read_text() == "hello\n"
