"""What a launcher on a real host meets: emptied logs, full disks, streams that others have set to
return at once, processes that nothing ends, directories with two names, slow logins."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import sys
import termios
import time
from pathlib import Path

import pytest
from kvstore_ext.launcher import direct
from kvstore_ext.launcher.attempts import Attempts
from kvstore_ext.launcher.environment import traced, working_directory
from kvstore_ext.launcher.failure import JobError
from kvstore_ext.launcher.far_ends import supervisor_command
from kvstore_ext.launcher.hosts import Host
from kvstore_ext.launcher.options import Options, parse
from kvstore_ext.launcher.output import Sink
from kvstore_ext.launcher.processes import Process
from kvstore_ext.launcher.rsync import rsync_command
from kvstore_ext.launcher.terminal import Terminal

from .jobs import LIMIT, Job
from .patched import launcher_with
from .stand_ins import stand_ins
from .test_restarts import SERVE

F_GETPIPE_SZ = 1032  # of fcntl, which has no name for it before Python 3.10


def test_a_log_that_is_emptied_meanwhile_has_what_comes_then(job: Job) -> None:
    script = "echo before; while [ ! -e emptied ]; do sleep 0.1; done; echo after"
    job.start("-n", "1", *SERVE, "sh", "-c", script)
    job.wait_for_line("[worker 0] before")
    log = job.log_dir / "worker-0.log"
    limit = time.monotonic() + LIMIT
    while log.read_text() != "before\n":
        assert time.monotonic() < limit
        time.sleep(0.05)
    os.truncate(log, 0)
    (job.directory / "emptied").touch()
    assert job.wait() == 0
    assert log.read_text() == "after\n"


def test_a_full_disk_of_the_launchers_host_ends_no_job(job: Job) -> None:
    job.entry = launcher_with(
        "import os",
        "kept = os.open",
        "is_log = lambda path: str(path).endswith('worker-0.log')",
        "full = lambda flags: kept('/dev/full', flags & ~os.O_EXCL)",
        "os.open = lambda path, flags, *mode, **more: "
        "full(flags) if is_log(path) else kept(path, flags, *mode, **more)",
    )
    assert job.run("-n", "1", *SERVE, "sh", "-c", "echo up; sleep 0.2; echo and down") == 0
    assert job.lines == ["[worker 0] up", "[worker 0] and down"]
    log = f"launch: the log {job.log_dir / 'worker-0.log'} of the launcher's host"
    takes_nothing, lacks = (line for line in job.errors if line.startswith(log))
    assert takes_nothing == (
        f"{log} takes nothing: No space left on device; the job goes on, and what is printed until "
        "it does will be missing in it"
    )
    assert lacks == f"{log} lacks 12 B of what was printed"


def test_a_full_disk_behind_standard_output_ends_no_job(job: Job) -> None:
    with open("/dev/full", "w") as full:
        script = "echo up; sleep 0.2; echo and down"
        job.start("-n", "1", *SERVE, "sh", "-c", script, stdout=full.fileno())
    assert job.wait() == 0, job.errors
    assert job.log("worker-0") == "up\nand down\n"
    takes_nothing, lacks = (line for line in job.errors if "standard output" in line)
    assert takes_nothing == (
        "launch: standard output takes nothing: No space left on device; the job goes on, and what "
        "is printed until it does is only in the logs"
    )
    assert lacks == "launch: standard output lacks 34 B of what was printed; the logs have it"


def test_a_file_system_that_does_not_answer_keeps_no_job_waiting(job: Job) -> None:
    os.mkfifo(hung := job.directory / "hung")  # that nobody reads
    job.entry = launcher_with(
        "import os",
        "kept = os.open",
        "is_hung = lambda path: str(path).endswith(('worker-0.log', 'status.json.new'))",
        f"os.open = lambda path, *more: kept({str(hung)!r}, os.O_RDWR) if is_hung(path) "
        "else kept(path, *more)",
        "from kvstore_ext.launcher import log, watching",
        "gathering.CLOSE_LIMIT = job.CLOSE_LIMIT = watching.CLOSE_LIMIT = 1.0",
        "log._MOST = 1 << 20",
    )
    script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo done"
    assert job.run("-n", "1", *SERVE, "sh", "-c", script) == 0
    assert job.lines[-1] == "[worker 0] done"
    log = f"launch: the log {job.log_dir / 'worker-0.log'} of the launcher's host"
    assert [line.partition("; ")[0] for line in job.errors if line.startswith(log)] == [
        f"{log} takes nothing: its file system does not answer",
        f"{log} may lack its end: its file system does not answer",
    ]


def is_full(pipe: int) -> bool:
    """Whether there is no room for another page."""
    waiting = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
    return bool(waiting > fcntl.fcntl(pipe, F_GETPIPE_SZ) - 4096)


def test_standard_output_may_be_set_to_return_at_once(job: Job) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    job.start("-n", "1", *SERVE, "sh", "-c", "yes | head -c 200000", stdout=writing)
    os.close(writing)
    limit = time.monotonic() + LIMIT
    while not is_full(reading):
        assert time.monotonic() < limit
        time.sleep(0.05)
    shown = 0
    with open(reading, "rb") as output:
        for piece in iter(lambda: output.read(65536), b""):
            shown += len(piece)
    assert job.wait() == 0, job.errors
    assert shown == 1_300_000  # as "[worker 0] y"


def test_processes_that_nothing_ends_are_named(job: Job) -> None:
    script = "\n".join([
        "import sys",
        "from kvstore_ext.launcher import process_tree, supervisor",
        "supervisor.GRACE = supervisor.GIVE_UP = 0.2",
        "process_tree.signal_all = lambda processes, number: None",
        "sys.exit(supervisor.main())",
    ])
    job.entry = launcher_with(
        f"main.supervisor_command = lambda python: [{sys.executable!r}, '-c', {script!r}]"
    )
    assert job.run("-n", "1", *SERVE, "sh", "-c", "sleep 20 & echo $!") == 0, job.errors
    left = job.lines[0].split()[-1]
    assert (
        "launch: worker 0 on localhost has left processes that SIGKILL has not ended yet, as in a "
        f"call of the kernel that waits for a disk: {left}"
    ) in job.errors
    os.kill(int(left), 9)


def test_a_directory_has_the_name_by_which_its_user_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, named = tmp_path / "export", tmp_path / "home"
    real.mkdir()
    named.symlink_to(real)
    monkeypatch.chdir(named)
    monkeypatch.setenv("PWD", str(named))
    assert working_directory() == str(named)
    assert traced("../traces", None)["KVSTORE_EXT_TRACE"] == str(tmp_path / "traces")
    for other in (str(tmp_path), "home", str(tmp_path / "none")):
        monkeypatch.setenv("PWD", other)
        assert working_directory() == str(real)


def some(directory: Path, *names: str, needed: int = 2, more: tuple[str, ...] = ()) -> Options:
    hostfile = directory / "hosts"
    hostfile.write_text("\n".join(names))
    arguments = ["-H", str(hostfile), "--hosts-needed", str(needed), "--restarts", "9", *more]
    return parse([*arguments, "-n", str(needed), "--no-secure", "true"])


def test_the_first_hosts_that_have_gone_come_back_where_too_few_are_left(tmp_path: Path) -> None:
    options = some(tmp_path, "one", "two", "three")
    one, two, three = options.hosts

    async def left(options: Options, *gone: Host | None) -> tuple[list[Host], str | None]:
        attempts = Attempts(options, make=lambda options: None, say=print)  # type: ignore
        attempts._failures = [JobError("", 1, host=host) for host in gone]
        return attempts._hosts(), attempts._obstacle()

    for gone, expected in (
        ([one], [two, three]),
        ([one, None], [two, three]),
        ([one, two], [one, three]),
        ([one, two, one], [two, three]),
    ):
        assert asyncio.run(left(options, *gone)) == (expected, None)
    obstacle = asyncio.run(left(some(tmp_path, "one", "two"), one))[1]
    assert obstacle == "the hostfile has 1 hosts left of the 2 that are needed"


def test_a_trace_stays_here_also_where_a_link_leads_to_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "named").symlink_to("real")
    monkeypatch.chdir(tmp_path / "named")
    monkeypatch.setenv("PWD", str(tmp_path / "named"))
    for place, stays in (("traces/one", True), (str(tmp_path / "traces"), False)):
        more = ("--log-dir", str(tmp_path), "--sync-dst-dir", "there", "--trace", place)
        options = some(tmp_path, "one", needed=1, more=more)
        excluded = [word for word in rsync_command(options.hosts[0], options) if "exclude" in word]
        assert excluded == (["--exclude=/traces/one"] if stays else [])


def test_logs_stay_here_vanished_files_do_no_harm_and_traces_go_into_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: Job
) -> None:
    monkeypatch.chdir(tmp_path)
    options = some(tmp_path, "one", "two", more=("--log-dir", "mine", "--sync-dst-dir", "there"))

    async def second() -> Options:
        attempts = Attempts(options, make=lambda options: None, say=print)  # type: ignore
        attempts._failures = [JobError("", 1)]
        return attempts._next_options()

    again = asyncio.run(second())
    assert again.log_dir == str(tmp_path / "mine" / "attempt-1")
    assert "--exclude=/mine" in rsync_command(options.hosts[0], again)
    environment = stand_ins(tmp_path / "programs")
    with (tmp_path / "programs" / "rsync").open("a") as rsync:
        rsync.write("echo 'rsync warning: some files vanished' >&2; exit 24\n")
    (job.directory / "there").mkdir()
    (job.directory / "some").write_text("first\n")
    arguments = ["-H", "some", "--interface", "lo", "--sync-dst-dir", "there", "--no-secure"]
    arguments += ["--trace", "traces", "-n", "1", *SERVE]
    worker = ["sh", "-c", 'cd / && echo "$KVSTORE_EXT_TRACE"']
    assert job.run(*arguments, *worker, environment=environment) == 0
    assert job.lines == [f"[worker 0] {job.directory}/there/traces"]


def test_a_process_that_waits_for_its_turn_does_not_start_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "_STARTS_A_HOST", 1)
    supervisor = " ".join(supervisor_command(sys.executable))

    async def start() -> None:
        starter = direct.DirectStarter(lambda host: ["sh", "-c", f"sleep 2; exec {supervisor}"])
        options = some(tmp_path, "one", needed=1)
        terminal = Terminal(quiet=True)
        processes = [Process("worker", rank, options.hosts[0], (), {}) for rank in range(3)]
        starts = [
            starter.start(number, each, Sink(each.name, str(tmp_path), terminal), limit=5)
            for number, each in enumerate(processes)
        ]
        for running in await asyncio.gather(*starts):
            running.end()
        await starter.close()

    asyncio.run(start())
