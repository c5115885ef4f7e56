"""A job started by the launcher, watched from outside."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import IO, Callable

import pytest

from tests.support import ending

LAUNCH = Path(__file__).resolve().parents[2] / "tools" / "launch.py"
STOCK = str(Path(__file__).with_name("stock.py"))
# In a shell's line: tells the launcher what the words after it say.
REPORT = f"{sys.executable} -S {Path(__file__).with_name('reporter.py')}"
LIMIT = 120.0  # seconds, as in cluster.py: the machine may be busy

# Servers that stay until they are ended, and workers that do and have two descendants that are
# hard to find or to end: one in a session of its own, one that ignores SIGTERM.
STAY = "sh -c 'echo up; exec sleep 1000'"
DONE = r"launch: the job is done after [\d.]+ s"
STUBBORN = "setsid sleep 1000 & sh -c 'trap \"\" TERM; echo up; sleep 1000; sleep 1000'"

# A worker of a store, and what it prints as one of one.
TRAIN = """
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.ones((3,))
store.init("weight", value)
store.push("weight", 2 * value)
store.pull("weight", out=value)
print(type(store).__name__, value.asnumpy().tolist(), flush=True)
"""
PULLED = "[worker 0] P3Worker [2.0, 2.0, 2.0]"


class Job:
    """One run of the launcher. `mark` is in the environment of every process of the job.

    `entry` is the command that starts the launcher, without arguments.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.entry = [sys.executable, str(LAUNCH)]
        self.mark = uuid.uuid4().hex
        self.log_dir = directory / "logs"
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._launcher: subprocess.Popen[str] | None = None
        self._output: queue.Queue[str] = queue.Queue()
        self._threads: list[threading.Thread] = []

    def start(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> None:
        self._launcher = subprocess.Popen(
            [*self.entry, "--log-dir", str(self.log_dir), *arguments],
            cwd=str(self.directory),
            env={**clean(), **(environment or {}), "KVSTORE_EXT_TEST_MARK": self.mark},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            universal_newlines=True,
            start_new_session=True,
            preexec_fn=_as_in_a_terminal(),
        )
        for stream, take in (
            (self._launcher.stdout, self._output.put),
            (self._launcher.stderr, self.errors.append),
        ):
            if stream is not None:
                how = {"args": (stream, take), "name": "output of the launcher"}
                self._threads.append(threading.Thread(target=_read, **how))
                self._threads[-1].start()

    def wait_for_line(self, line: str) -> None:
        """Waits until the launcher has printed the line."""
        while line not in self.lines:
            try:
                self.lines.append(self._output.get(timeout=LIMIT))
            except queue.Empty:
                pytest.fail(f"no '{line}' in {self.lines}; it says: {self.errors}")

    def wait_for_match(self, pattern: str) -> re.Match[str]:
        """Waits until the launcher has printed a line in which this is found."""
        while True:
            for line in self.lines:
                match = re.search(pattern, line)
                if match:
                    return match
            try:
                self.lines.append(self._output.get(timeout=LIMIT))
            except queue.Empty:
                pytest.fail(f"no '{pattern}' in {self.lines}; it says: {self.errors}")

    def wait_for_error(self, pattern: str) -> None:
        """Waits until the launcher has said a line that matches."""
        limit = time.monotonic() + LIMIT
        while not any(re.fullmatch(pattern, line) for line in self.errors):
            assert time.monotonic() < limit, f"no '{pattern}' in {self.errors}"
            time.sleep(0.05)

    def runs(self) -> bool:
        """Whether the launcher has been started and has not ended."""
        return self._launcher is not None and self._launcher.poll() is None

    def wait(self, limit: float = LIMIT) -> int:
        """Returns the launcher's exit status, once all it printed is in `lines` and `errors`."""
        assert self._launcher is not None
        status = self._launcher.wait(limit)
        for thread in self._threads:
            thread.join(LIMIT)
        while not self._output.empty():
            self.lines.append(self._output.get())
        return status

    def run(self, *arguments: str, environment: dict[str, str] | None = None) -> int:
        """Starts the job and returns the launcher's exit status."""
        self.start(*arguments, environment=environment)
        return self.wait()

    def signal(self, number: int) -> None:
        """Signals the launcher's process group, as Ctrl-C in a terminal does."""
        assert self._launcher is not None
        os.killpg(self._launcher.pid, number)

    def log(self, name: str) -> str:
        return (self.log_dir / f"{name}.log").read_text()

    def assert_gone(self, but: Callable[[str], bool] = lambda command: False) -> None:
        """Waits until no process of the job is left and fails if one stays.

        `but` says of commands whether they may stay.
        """

        def left() -> dict[int, str]:
            return {id_: line for id_, line in self.processes().items() if not but(line)}

        # They are not our children, so there is no event to wait for.
        limit = time.monotonic() + LIMIT
        found = left()
        while found and time.monotonic() < limit:
            time.sleep(0.05)
            found = left()
        assert not found, found

    def processes(self) -> dict[int, str]:
        """Returns the processes, by id, whose environment has the mark, with their commands."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.mark.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
        return found

    def process(self, name: str) -> int:
        """Returns the id of the process of this name, such as "worker 0"."""
        role, rank = name.split()
        wanted = {f"DMLC_ROLE={role}", f"KVSTORE_EXT_LAUNCH_RANK={rank}"}
        for process in self.processes():
            with contextlib.suppress(OSError):
                if wanted <= set(environment(process)):
                    return process
        raise AssertionError(f"no {name} in {self.processes()}")

    def end(self) -> None:
        """Ends whatever is left of the job, however it went."""
        if self._launcher is not None and self._launcher.poll() is None:
            self._launcher.kill()
            self._launcher.wait()
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):  # its supervisor ends it as well
                os.kill(process, signal.SIGKILL)


def environment(process: int) -> list[str]:
    """Returns the variables of a process, each with its value."""
    return Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")


def await_file(path: Path) -> None:
    """Returns once a process of the job has made the file."""
    limit = time.monotonic() + LIMIT
    while not path.exists():
        assert time.monotonic() < limit, f"no {path}"
        time.sleep(0.05)


def clean() -> dict[str, str]:
    """Returns the environment without what the tests' own process or user has set for MXNet."""
    prefixes = ("KVSTORE_EXT_", "MXNET_", "DMLC_", "PS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


def _as_in_a_terminal() -> Callable[[], None]:
    """Returns what the launcher's process does first: tests may run under nohup, or behind &,
    where the launcher would ignore what a terminal sends, as they do."""
    end_with_parent = ending.with_parent()

    def begin() -> None:
        if end_with_parent is not None:
            end_with_parent()
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return begin


def _read(stream: IO[str], take: Callable[[str], None]) -> None:
    with stream:
        for line in stream:
            take(line.rstrip("\n"))
