"""What the launcher's terminal shows: one worker alone, colours, or little."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios

import pytest
from kvstore_ext.launcher.account import size

from .jobs import Job, await_file
from .patched import launcher_with

BAR = r"printf 'step 1\rstep 2\r'; echo; printf $KVSTORE_EXT_LAUNCH_RANK/$COLUMNS"


def test_one_worker_alone_is_shown_as_it_prints(job: Job) -> None:
    arguments = ["-n", "2", "-s", "1", "--server-command", "echo serving"]
    command = ["--only-rank", "1", *arguments, "sh", "-c", BAR]
    shown = run_on_terminal(job, command, {"COLUMNS": ""})
    assert shown == b"step 1\rstep 2\r\r\n1/77"  # a terminal makes \r\n of \n
    for rank in range(2):
        log = (job.log_dir / f"worker-{rank}.log").read_bytes()
        assert log == f"step 1\rstep 2\r\n{rank}/77".encode()
    assert job.log("server-0") == "serving\n"


def test_the_lines_of_a_hidden_worker_that_fails(job: Job) -> None:
    worker = "[ $KVSTORE_EXT_LAUNCH_RANK = 0 ] || { echo why; exit 3; }; sleep 1000"
    arguments = ["-n", "2", "--only-rank", "0", "--quiet", "--server-command", "sleep 1000"]
    assert job.run(*arguments, "sh", "-c", worker) == 3
    assert job.lines == []
    assert job.errors == [
        "launch: worker 1 on localhost ended with exit status 3",
        f"launch: its last lines (all are in {job.log_dir}/worker-1.log):",
        "    why",
    ]


def test_what_the_terminal_has_just_shown_is_not_repeated(job: Job) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    arguments = ["-n", "1", "--server-command", "sleep 1000"]
    try:
        worker = ["sh", "-c", "echo one; echo why; exit 3"]
        job.start(*arguments, *worker, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = _read_all(ours).decode()
    finally:
        os.close(ours)
    assert job.wait() == 3
    assert shown.count("why") == 1
    assert f"launch: its last lines are above (all are in {job.log_dir}/worker-0.log)" in shown


def test_quiet(job: Job) -> None:
    assert job.run("-q", "-n", "1", "--server-command", "true", "echo", "shown") == 0
    assert job.lines == ["[worker 0] shown"]
    assert job.errors == []


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours(job: Job, environment: dict[str, str], coloured: bool) -> None:
    arguments = ["-n", "6", "-s", "1", "--server-command", "echo up", "echo", "up"]
    shown = run_on_terminal(job, arguments, environment).decode().splitlines()
    plain = [re.sub("\x1b\\[[0-9]+m", "", line) for line in shown]
    names = [*(f"worker {rank}" for rank in range(6)), "server 0", "scheduler 0"]
    assert sorted(plain) == sorted(f"[{name}] up" for name in names)
    if not coloured:
        assert shown == plain
        return
    colours = dict(zip(plain, (line.partition("[w")[0].partition("[s")[0] for line in shown)))
    assert colours["[worker 0] up"] == colours["[worker 5] up"] == "\x1b[36m"
    assert colours["[server 0] up"] == colours["[scheduler 0] up"] == "\x1b[90m"
    assert len(set(colours.values())) == 6
    assert "\x1b" not in job.log("worker-0")


def test_a_terminal_that_nobody_reads_stops_no_job(job: Job) -> None:
    """As after Ctrl-S: the logs have all, and the launcher says what the terminal has not."""
    ours, theirs = pty.openpty()
    count = 60_000  # the launcher keeps 4 MiB
    worker = f"seq -f %0100.f {count}; touch printed; while [ ! -e read ]; do sleep 0.1; done"
    arguments = ["-n", "1", "--server-command", "true", "sh", "-c", f"{worker}; echo last"]
    try:
        job.start(*arguments, environment={"TERM": "dumb"}, stdout=theirs)
        os.close(theirs)
        await_file(job.directory / "printed")
        (job.directory / "read").touch()
        shown = _read_all(ours)
    finally:
        os.close(ours)
    assert job.wait() == 0, job.errors
    lines = job.log("worker-0").splitlines()
    assert lines == [*(f"{number:0100}" for number in range(1, count + 1)), "last"]
    written = len("".join(f"[worker 0] {line}\n" for line in lines))
    left_out = written - len(shown.replace(b"\r\n", b"\n"))
    said = f"launch: {size(left_out)} of output was not shown, as nobody read on; the logs have it"
    assert said in job.errors, job.errors


def test_a_terminal_that_nobody_reads_at_all(job: Job) -> None:
    job.entry = launcher_with("from kvstore_ext.launcher import screen", "screen._PATIENCE = 0.5")
    reading, writing = os.pipe()
    try:
        arguments = ["-n", "1", "--server-command", "true", "seq", "100000"]
        job.start(*arguments, stdout=writing)
        os.close(writing)
        assert job.wait() == 0
    finally:
        os.close(reading)
    assert len(job.log("worker-0").splitlines()) == 100000


def run_on_terminal(job: Job, arguments: list[str], environment: dict[str, str]) -> bytes:
    """Returns what a terminal shows of a job that goes well."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 77, 0, 0))
    try:
        job.start(*arguments, environment={"TERM": "xterm", **environment}, stdout=theirs)
        os.close(theirs)
        shown = _read_all(ours)
    finally:
        os.close(ours)
    assert job.wait() == 0, job.errors
    return shown


def _read_all(descriptor: int) -> bytes:
    shown = b""
    while True:
        try:
            data = os.read(descriptor, 4096)
        except OSError:  # which Linux gives once nobody has the terminal any more
            return shown
        if not data:
            return shown
        shown += data
