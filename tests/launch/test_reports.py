"""What processes tell the launcher reaches it, and what it says of that."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator

import pytest
from kvstore_ext.launch_reports import report
from kvstore_ext.launcher.account import size
from kvstore_ext.launcher.far_ends import supervisor_command
from kvstore_ext.launcher.protocol import GREETING, encode
from kvstore_ext.launcher.report_socket import ReportSocket

from .jobs import REPORT, STAY, Job

JOINING, JOINED = """'{"joining": true}'""", """'{"joined": true}'"""
TRAFFIC = """'{"traffic": {"sent": 2000000, "received": 1500}}'"""
# None of these is a fact that anybody knows of.
NONSENSE = """'' '[1]' '{' '{"news": 1}' '{"joined": 1, "traffic": 7, "failed": null}' """
NONSENSE += """'{"traffic": {"sent": -1, "received": "x"}}' """
NONSENSE += """"$(head -c 70000 /dev/zero | tr '\\0' [)" """


def test_a_job_that_stands_and_what_it_did(job: Job) -> None:
    directory = "dirname $KVSTORE_EXT_REPORTS; stat -c %a $(dirname $KVSTORE_EXT_REPORTS)"
    worker = f"{directory}; {REPORT} {NONSENSE} {JOINING} {TRAFFIC} {JOINED} {TRAFFIC}"
    arguments = ["-n", "2", "-s", "1", "--server-command", "true", "sh", "-c", worker]
    assert job.run(*arguments) == 0
    assert len(job.errors) == 3, job.errors
    assert re.fullmatch(r"launch: 2 workers and 1 server on 1 host after [\d.]+ s", job.errors[1])
    traffic = "workers sent 8.0 MB and received 6.0 kB"
    assert re.fullmatch(rf"launch: the job is done after [\d.]+ s; {traffic}", job.errors[2])
    for name in ("worker-0", "worker-1"):
        path, mode = job.log(name).splitlines()
        assert mode == "700"
        assert not Path(path).exists()


def test_where_a_socket_finds_no_place_in_tmpdir(job: Job, tmp_path: Path) -> None:
    deep = tmp_path / ("directory" * 12)
    deep.mkdir()
    worker = f"{REPORT} {JOINED}; echo $KVSTORE_EXT_REPORTS"
    arguments = ["-n", "1", "--server-command", "true", "sh", "-c", worker]
    # A launcher that starts this one has a socket too, which is not that of these processes.
    environment = {"TMPDIR": str(deep), "KVSTORE_EXT_REPORTS": "/another"}
    assert job.run(*arguments, environment=environment) == 0
    assert job.lines[0].startswith("[worker 0] /tmp/kvstore_ext-")
    assert "1 worker and 1 server on 1 host" in job.errors[1]
    assert list(deep.iterdir()) == []


def test_whom_the_start_waits_for(job: Job) -> None:
    late = "[ $KVSTORE_EXT_LAUNCH_RANK != 1 ] || exit 0; [ $KVSTORE_EXT_LAUNCH_RANK = 2 ] || "
    worker = f"{late} {REPORT} {JOINING}; exec sleep 1000"
    server = f"[ $DMLC_ROLE = scheduler ] || {REPORT} {JOINING}; exec sleep 1000"
    arguments = ["-n", "3", "-s", "1", "--server-command", f"sh -c {shlex.quote(server)}"]
    job.start("--wait-notice", "0.5", *arguments, "sh", "-c", worker)
    missing = "worker 1 on localhost (has ended without having joined), "
    missing += "worker 2 on localhost (has not opened a store yet), scheduler 0 on localhost"
    job.wait_for_error(rf"launch: after [\d.]+ s the job waits for {re.escape(missing)}")
    job.signal(signal.SIGTERM)
    assert job.wait() == 143


def test_servers_that_report_nothing_are_not_missing(job: Job) -> None:
    worker = f"[ $KVSTORE_EXT_LAUNCH_RANK = 1 ] || {REPORT} {JOINING}; exec sleep 1000"
    arguments = ["-n", "2", "-s", "1", "--server-command", STAY, "sh", "-c", worker]
    job.start("--wait-notice", "0.5", *arguments)
    missing = re.escape("worker 1 on localhost (has not opened a store yet)")
    job.wait_for_error(rf"launch: after [\d.]+ s the job waits for {missing}")
    job.signal(signal.SIGTERM)
    assert job.wait() == 143


# Says each number as a report, and then prints it; a line before that is on its way meanwhile.
COUNTING = """
import os, socket

reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
reports.connect(os.environ["KVSTORE_EXT_REPORTS"])
for number in range(3000):
    os.write(1, b".\\n")
    reports.send(b'{"step": %d}' % number)
    os.write(1, b"%d\\n" % number)
"""


def test_what_is_reported_before_something_is_printed_arrives_before_it(tmp_path: Path) -> None:
    order = {"command": [sys.executable, "-S", "-c", COUNTING], "environment": {}}
    run = {"run": {**order, "directory": str(tmp_path)}}
    command = supervisor_command(sys.executable)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdin
        assert supervisor.stdout
        supervisor.stdin.write(encode(run))
        supervisor.stdin.flush()
        printed, reported, status = b"", -1, None
        assert supervisor.stdout.readline() == GREETING
        while status is None:
            message = json.loads(supervisor.stdout.readline())
            printed += supervisor.stdout.read(message.get("size", 0))
            reported = message.get("report", {}).get("step", reported)
            *lines, _ = printed.split(b"\n")
            last = max((int(line) for line in lines if line.isdigit()), default=-1)
            assert last <= reported
            printed = printed[printed.rfind(b"\n") + 1 :]
            status = message.get("ended")
    assert (status, reported) == ({"status": 0}, 2999)


def test_a_reason_of_any_length_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = ReportSocket()
    monkeypatch.setenv("KVSTORE_EXT_REPORTS", str(receiver.path))
    report(failed="worker 0: " + 100_000 * "\U0001f40d")
    [fact] = receiver.receive()
    receiver.close()
    assert fact["failed"].startswith("worker 0: ")
    assert len(encode({"report": fact})) < 65536


def test_no_directory_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", fail)
    receiver = ReportSocket()
    assert str(receiver.path).startswith("/tmp/")
    receiver.close()


def test_processes_that_cannot_join(job: Job) -> None:
    stay = f"{REPORT} {JOINING}; exec sleep 1000"
    arguments = ["-n", "1", "--server-command", f"sh -c {shlex.quote(stay)}", "sh", "-c", stay]
    job.start("--wait-notice", "0.5", *arguments)
    late = "all processes have come, but worker 0 on localhost cannot join yet: is there a firewall"
    job.wait_for_error(rf"launch: after [\d.]+ s {late} .*")
    job.signal(signal.SIGTERM)
    assert job.wait() == 143


NO_STORE = "launch: no worker has opened a store of this job, so each has trained alone"


def test_no_store_is_opened_of_our_servers(job: Job) -> None:
    assert job.run("-n", "2", "-s", "1", "--grace", "0.5", "true") == 1
    assert job.errors[1].startswith(NO_STORE)
    assert len(job.errors) == 2
    job.assert_gone()


@pytest.mark.parametrize(("worker", "status"), [("true", 1), (f"{REPORT} {JOINED}", 0)])
def test_no_store_is_opened_of_servers_that_report(job: Job, worker: str, status: int) -> None:
    server = f"{REPORT} {JOINING}; touch said-$DMLC_ROLE; exec sleep 1000"
    servers = ["--grace", "2", "--server-command", f"sh -c {shlex.quote(server)}"]
    all_have = "until [ -e said-server -a -e said-scheduler ]; do sleep 0.05; done"
    arguments = ["-n", "1", *servers, "sh", "-c", f"{all_have}; {worker}"]
    assert job.run(*arguments) == status
    assert any(line.startswith(NO_STORE) for line in job.errors) == (status == 1)


def test_servers_give_up_because_no_store_is_opened(job: Job) -> None:
    reason = "within 8 s not all of 1 workers and 1 servers have come to the scheduler at here:1"
    failed = shlex.quote(f'{{"failed": "{reason}"}}')
    server = f"{REPORT} {JOINING} {failed}; exit 1"
    arguments = ["-n", "1", "--server-command", f"sh -c {shlex.quote(server)}", "sleep", "1000"]
    assert job.run(*arguments) == 1
    ended = "0 on localhost ended with exit status 1: no worker has opened a store"
    assert re.match(f"launch: (server|scheduler) {ended} of this job in time", job.errors[1])
    assert "raise the option timeout" in job.errors[1]


def test_reports_that_reach_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KVSTORE_EXT_REPORTS", raising=False)
    report(joined=True)
    path = str(tmp_path / "socket")
    monkeypatch.setenv("KVSTORE_EXT_REPORTS", path)
    report(joined=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(path)
        for _ in range(1000):
            if not _takes_more(path):
                break
        report(joined=True)  # which waits for a moment
    report(joined=True)
    monkeypatch.setenv("KVSTORE_EXT_REPORTS", "x" * 200)
    report(failed="y" * 10_000_000)


def _takes_more(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        try:
            sender.sendto(b"{}", path)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (12_345_678_901, "12.3 GB"),
        (5 * 10**18, "5000 PB"),
    ],
)
def test_sizes(count: int, words: str) -> None:
    assert size(count) == words


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for temporary files, of a path that leaves room for a socket's."""
    with tempfile.TemporaryDirectory() as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        yield Path(directory)


def test_a_link_in_the_place_of_an_abandoned_socket_is_not_followed(short: Path) -> None:
    """Somebody else may have made it, where all may write."""
    own = short / "own"
    own.mkdir()
    (own / "socket").write_text("precious")
    prefix = _prefix_of_this_host()
    abandoned = _abandon(short / f"{prefix}-abandoned")
    (short / f"{prefix}-link").symlink_to(own)
    ReportSocket().close()
    assert (own / "socket").read_text() == "precious"
    assert not abandoned.exists()


def test_the_socket_of_another_host_is_not_removed(short: Path) -> None:
    """Where hosts share a directory for temporary files nobody here can listen at it."""
    prefix = _prefix_of_this_host()
    others = _abandon(short / f"{prefix[:-1]}{'0' if prefix[-1] != '0' else '1'}-theirs")
    ReportSocket().close()
    assert (others / "socket").exists()


def _abandon(directory: Path) -> Path:
    directory.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as abandoned:
        abandoned.bind(str(directory / "socket"))
    return directory


def _prefix_of_this_host() -> str:
    receiver = ReportSocket()
    receiver.close()
    return Path(str(receiver.path)).parent.name.rpartition("-")[0]
