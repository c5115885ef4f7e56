"""What one sees of a job while it runs: --status, `kvstore-launch top` and --metrics-port."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from kvstore_ext.launcher import watching
from kvstore_ext.launcher.account import is_status
from kvstore_ext.launcher.metrics import METRICS, UP
from prometheus_client.parser import text_string_to_metric_families

from tests.support.fork_desk import ForkDesk
from tests.support.paths import ROOT

from .jobs import LAUNCH, LIMIT, REPORT, Job
from .sshd import Sshd

DASHBOARD = ROOT / "docs" / "grafana" / "kvstore_ext.json"
# Workers of a real store, of which the second is late with every push.
TRAIN = """
import time
import kvstore_ext
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.ones((1000,))
store.init(0, value)
while True:
    time.sleep(0.2 if store.rank == 1 else 0)
    store.pushpull(0, value, out=value)
    value.wait_to_read()
"""


def status(**figures: Any) -> str:
    return shlex.quote(json.dumps({"status": figures}))


def reporting_job() -> list[str]:
    """Returns a job whose processes report twice, a second apart, and stay until `enough` is there.

    Worker 1 does half the steps, and the server waits for it.
    """
    stay = "while [ ! -e enough ]; do sleep 0.1; done"
    joined = shlex.quote('{"joined": true}')

    def worker(steps: int, sent: int) -> str:
        first = status(at=1.0, steps=steps, made=steps, waiting=0.5, sent=0, received=0)
        then = {"at": 2.0, "steps": 2 * steps, "made": 2 * steps, "waiting": 0.75}
        then = status(**then, sent=sent, received=3 * sent)
        return f"{REPORT} {joined} {first}; sleep 2; {REPORT} {then}"

    def server(late: float, at: float) -> str:
        workers = [[10 * at, 0.0, 0.0], [10 * at, late, 0.0]]
        return status(at=at, sent=7, received=8, held=1_500_000, workers=workers)

    fast, slow = worker(20, 2_000_000), worker(10, 1000)
    workers = f"if [ $KVSTORE_EXT_LAUNCH_RANK = 0 ]; then {fast}; else {slow}; fi; {stay}"
    servers = f"[ $DMLC_ROLE = scheduler ] || {{ {REPORT} {joined} {server(0.0, 1)}; sleep 2; "
    servers += f"{REPORT} {server(2.5, 2)}; }}; {stay}"
    command = f"sh -c {shlex.quote(servers)}"
    return ["-n", "2", "-s", "1", "--server-command", command, "sh", "-c", workers]


def figures(job: Job) -> dict[str, Any]:
    """Returns what lies in the log directory; {} before."""
    try:
        return dict(json.loads((job.log_dir / "status.json").read_text()))
    except FileNotFoundError:
        return {}


def wait_until_late(job: Job) -> dict[str, Any]:
    limit = time.monotonic() + LIMIT
    while True:
        found = figures(job)
        if found.get("slowest") and found["steps_rate"]:
            return found
        assert job.runs(), job.errors
        assert time.monotonic() < limit, (found, job.errors)
        time.sleep(0.1)


def top(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(LAUNCH), "top", str(directory), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)


def scrape(port: int) -> dict[tuple[str, str, str], float]:
    """Returns values by metric, role and rank."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT) as answer:
        text = answer.read().decode()
    return {
        (sample.name, sample.labels["role"], sample.labels["rank"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class OnTerminal:
    """A terminal of 80 columns, and what has been written to it."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 80, 0, 0))
        self._shown = b""
        # Of a test that fails before anybody has read all, it would go on for ever.
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    def wait_for(self, words: str) -> None:
        """Returns once they have been written."""
        limit = time.monotonic() + LIMIT
        while words not in self._shown.decode(errors="replace"):
            assert time.monotonic() < limit, self._shown
            time.sleep(0.1)

    def read(self) -> str:
        """Returns all, once nobody has the other end any more."""
        os.close(self.theirs)
        self._reader.join(LIMIT)
        os.close(self.ours)
        return self._shown.decode()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # which Linux gives once nobody writes any more
            while True:
                self._shown += os.read(self.ours, 4096)


def test_what_processes_report_is_seen_everywhere(job: Job) -> None:
    port = free_port()
    terminal, table = OnTerminal(), OnTerminal()
    arguments = ["--status", "--metrics-port", str(port), *reporting_job()]
    job.start(*arguments, environment={"TERM": "xterm"}, stderr=terminal.theirs)
    found = wait_until_late(job)
    assert (job.log_dir / "status.json").stat().st_mode & 0o777 == 0o600
    assert found["slowest"] == "worker 1"
    assert found["steps_rate"] == 10.0
    assert found["waiting"] == 0.25
    command = [sys.executable, str(LAUNCH), "top", str(job.log_dir)]
    with subprocess.Popen(command, stdout=table.theirs) as watching:
        try:
            once = top(job.log_dir, "--once")
            values = scrape(port)
            short = "10.0 steps/s, 25% waiting, slowest: worker 1 on localhost, 0.25 s late"
            said = f"{short}, 2.0 MB/s sent, 6.0 MB/s received"
            terminal.wait_for(short)
            table.wait_for(said[:79])
            (job.directory / "enough").touch()
            assert job.wait() == 0
            assert watching.wait(LIMIT) == 0
        finally:
            watching.kill()

    assert once.returncode == 0, once.stderr
    head, _, names, *rows = once.stdout.splitlines()
    assert head == said
    assert names.split()[:4] == ["process", "host", "state", "steps"]
    expected = [
        "worker 0 localhost runs 40 20.0 25% 0.00s 2.0 MB 6.0 MB",
        "worker 1 localhost runs 20 10.0 25% 0.25s 1.0 kB 3.0 kB",
        "server 0 localhost runs 0 B 0 B 1.5 MB",
        "scheduler 0 localhost runs",
    ]
    assert [" ".join(row.split()) for row in rows] == expected
    assert {row.index("localhost") for row in rows} == {names.index("host")}
    assert {row.index("runs") for row in rows} == {names.index("state")}

    written = terminal.read()
    assert short in written
    assert "MB/s sent" not in written  # nothing that does not fit
    # Each drawing erases the last, and at the end none is left.
    assert "steps/s" not in re.sub("[^\n]*\r\x1b\\[K", "", written)
    assert "launch: the job is done" in written
    shown = table.read()
    assert said[:79] in shown
    assert re.search("the job ended well [0-9]+ s ago", shown)

    assert values["kvstore_ext_steps_total", "worker", "0"] == 40
    assert values["kvstore_ext_sent_bytes_total", "worker", "1"] == 1000
    assert values["kvstore_ext_received_bytes_total", "server", "0"] == 8
    assert values["kvstore_ext_lateness_seconds", "worker", "1"] == 0.25
    assert values["kvstore_ext_waiting_ratio", "worker", "0"] == 0.25
    assert values["kvstore_ext_held_bytes", "server", "0"] == 1_500_000
    assert values[UP, "server", "0"] == 1
    assert values[UP, "scheduler", "0"] == 1


def test_a_slow_worker_of_a_real_store_is_named(job: Job) -> None:
    (job.directory / "train.py").write_text(TRAIN)
    with ForkDesk(job.directory / "desk").serve() as desk:
        serve = shlex.join([*desk.command, "-m", "kvstore_ext.server"])
        arguments = ["-n", "2", "-s", "1", "--quiet", "--status", "--server-command", serve]
        job.start(*arguments, *desk.command, "train.py")
        found = wait_until_late(job)
        job.signal(signal.SIGKILL)
        job.wait()
        job.assert_gone()
    late = {row["rank"]: row["late"] for row in found["processes"] if row["role"] == "worker"}
    assert found["slowest"] == "worker 1"
    assert late[0] < late[1]
    [server] = [row for row in found["processes"] if row["role"] == "server"]
    assert server["held"] >= 4000
    assert not any("steps/s" in line for line in job.errors), job.errors  # --quiet
    limit = time.monotonic() + LIMIT
    while (killed := top(job.log_dir)).returncode == 0:
        assert time.monotonic() < limit, killed.stdout
        time.sleep(0.5)
    assert killed.returncode == 1
    assert killed.stdout.startswith("no figures for "), killed.stdout


def test_the_same_by_ssh(job: Job, sshd: Sshd) -> None:
    options = ["-H", sshd.hostfile(), "--interface", "lo", f"--launcher-options=-F {sshd.config}"]
    job.start(*options, "--no-secure", *reporting_job())
    assert wait_until_late(job)["slowest"] == "worker 1"
    (job.directory / "enough").touch()
    assert job.wait() == 0, job.errors


def test_a_mistake_in_watching_ends_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watching.Watching(str(tmp_path))

    def look(*_: object) -> None:
        raise ZeroDivisionError("of a rate")

    monkeypatch.setattr(watching, "EVERY", 0.0)
    monkeypatch.setattr(watching.Status, "look", look)
    said: list[str] = []
    asyncio.run(watched.watch(None, said.append))
    assert said == ["the job goes on, but its figures end here: ZeroDivisionError('of a rate')"]
    watched.conclude("")
    assert json.loads((tmp_path / watching.NAME).read_text())["state"] == "over"


def test_top_says_which_process_was_the_cause(job: Job) -> None:
    joined = shlex.quote('{"joined": true}')
    wait = f"{REPORT} {joined}; exec sleep 1000"
    fail = f"[ $DMLC_ROLE$KVSTORE_EXT_LAUNCH_RANK != server1 ] || kill -9 $$; {wait}"
    servers = ["-s", "2", "--server-command", f"sh -c {shlex.quote(fail)}"]
    assert job.run("-n", "2", *servers, "sh", "-c", wait) == 137
    ended = top(job.log_dir)
    assert ended.returncode == 0
    head, _, _, *rows = ended.stdout.splitlines()
    cause = "server 1 on localhost was killed by signal 9 (SIGKILL)"
    assert re.fullmatch(f"the job failed [0-9]+ s ago: {re.escape(cause)}", head), head
    states = {" ".join(row.split()[:2]): row.split()[3] for row in rows}
    assert states.pop("server 1") == "failed"
    assert set(states.values()) == {"stopped"}


def test_top_of_no_job(tmp_path: Path) -> None:
    ended = top(tmp_path)
    assert ended.returncode == 2
    reason = f"launch: {tmp_path} is no directory of a job's logs: status.json: No such file or "
    assert ended.stderr == f"{reason}directory; the launcher's first line names it\n"


def test_no_metrics_can_be_served(job: Job, tmp_path: Path) -> None:
    (tmp_path / "prometheus_client.py").write_text("raise ImportError")
    environment = {"PYTHONPATH": str(tmp_path)}
    arguments = ["--metrics-port", "9000", "-n", "1", "true"]
    assert job.run(*arguments, environment=environment) == 2
    [said] = job.errors
    assert said == (
        "launch: --metrics-port needs prometheus_client: pip install prometheus-client"
    )


def test_a_port_that_is_taken(job: Job) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert job.run("--metrics-port", str(port), "-n", "1", "true") == 2
    [said] = job.errors
    reason = "Address already in use"
    assert said == f"launch: --metrics-port: cannot listen at 127.0.0.1:{port}: {reason}"


def test_the_dashboard_asks_for_what_is_served() -> None:
    board = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    names = {name for query in asked for name in re.findall(r"\bkvstore_ext_\w+", query)}
    assert names == {*METRICS, UP}


@pytest.mark.parametrize(
    "report",
    [
        {"steps": 1},
        {"at": "now"},
        {"at": -1},
        {"at": float("inf")},
        {"at": float("nan")},
        {"at": True},
        {"at": 1, "workers": {}},
        {"at": 1, "workers": [[1, 2]]},
        {"at": 1, "workers": [[1, 2, "x"]]},
        {"at": 1, "sent": None},
    ],
)
def test_a_report_that_is_none_does_not_count(report: dict[str, Any]) -> None:
    assert not is_status(report)
    assert is_status({"at": 1, "sent": 0.5, "workers": [[1, 2, 3]]})
