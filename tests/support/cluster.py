"""Jobs on this machine for tests: a scheduler, servers and workers as real processes."""
from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Sequence

from benchmarks.cluster import Host
from tests.support import ending, forked
from tests.support.paths import ROOT, SCRIPTS, python_path
from tests.support.processes import LIMIT

P3_SERVER = ("-m", "kvstore_ext.server")
STOCK_SERVER = (str(ROOT / "tests" / "launch" / "stock.py"),)

# Of a process with arguments, an environment, a directory and a host, None for this one.
Start = Callable[["Sequence[str]", "dict[str, str]", Path, "Host | None"], Any]


class Process:
    """A started process and what it has written so far, both streams in one."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environment: dict[str, str],
        directory: Path,
        changed: threading.Condition,
        start: Start,
        host: Host | None = None,
    ) -> None:
        self.name = name
        self.ended = False
        self.ended_at: float | None = None  # by time.monotonic()
        self._lines: list[str] = []
        self._changed = changed  # notified of every line
        self._popen = start(arguments, environment, directory, host)
        self.pid = self._popen.pid
        self._reader = threading.Thread(target=self._read, name=f"output of {name}")
        self._reader.start()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self.ended, self.ended_at = True, time.monotonic()
            self._changed.notify_all()

    @property
    def output(self) -> str:
        return "".join(self._lines)

    def await_output(self, pattern: str, seconds: float = LIMIT) -> None:
        """Returns once it has written a line that matches; fails when it ends without."""
        wrote = self.watch(pattern)
        with self._changed:
            self._changed.wait_for(lambda: wrote() or self.ended, seconds)
            assert wrote(), f"{self.name} has not written {pattern!r}"

    def watch(self, pattern: str) -> Callable[[], bool]:
        """A function that says whether it has written a line that matches."""
        seen = 0  # lines without a match

        def wrote() -> bool:
            nonlocal seen
            while seen < len(self._lines) and not re.search(pattern, self._lines[seen]):
                seen += 1
            return seen < len(self._lines)

        return wrote

    def wait(self, seconds: float = LIMIT) -> int | None:
        """The exit status, once it has ended and its output is read; None if it still runs then."""
        self._reader.join(seconds)
        return None if self._reader.is_alive() else self._popen.wait(LIMIT)

    def send(self, number: int) -> None:
        """Sends it and its children a signal, unless it has ended."""
        if self._popen.poll() is None:
            os.killpg(self.pid, number)


def _interpreter(
    arguments: Sequence[str], environment: dict[str, str], directory: Path, host: Host | None
) -> subprocess.Popen[str]:
    within = host.within if host else []
    return subprocess.Popen(
        [*within, sys.executable, "-u", *arguments],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",  # ps-lite prints messages as they are
        start_new_session=True,  # so that its children can be ended with it
        preexec_fn=ending.with_parent(),
    )


class Job:
    """Processes that were started together. `workers[i]` need not get rank i: they race for it."""

    def __init__(self) -> None:
        self.scheduler: list[Process] = []
        self.servers: list[Process] = []
        self.workers: list[Process] = []
        self.changed = threading.Condition()

    @property
    def processes(self) -> list[Process]:
        return [*self.scheduler, *self.servers, *self.workers]

    def wait(self, seconds: float = LIMIT) -> None:
        """Returns when all have ended well; fails as soon as one has not, or when time is up."""
        deadline = time.monotonic() + seconds
        for process in [*self.workers, *self.servers, *self.scheduler]:
            status = process.wait(max(0.0, deadline - time.monotonic()))
            how = "still runs" if status is None else f"ended with status {status}"
            assert status == 0, f"{process.name} {how}"

    def await_output(self, pattern: str, seconds: float = LIMIT) -> None:
        """Returns once any of them has written a line that matches."""
        watches = [process.watch(pattern) for process in self.processes]
        with self.changed:
            found = self.changed.wait_for(lambda: any(wrote() for wrote in watches), seconds)
        assert found, f"nobody has written {pattern!r}"

    def report(self) -> str:
        """What the processes have written."""
        return "\n".join(f"--- {p.name}\n{p.output}" for p in self.processes if p.output)


class Cluster:
    """Starts jobs, and ends whatever is left of them in `end`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.jobs: list[Job] = []

    def start(
        self,
        script: Path | Callable[..., None],
        *arguments: object,
        workers: int = 2,
        servers: int = 2,
        options: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
        server: Sequence[str] = P3_SERVER,
        directory: Path | None = None,
        fork: bool = True,
        hosts: Sequence[Host] = (),
    ) -> Job:
        """Starts a job and returns at once.

        Parameters
        ----------
        script
            What a worker runs: a file, or a function of a test module, which is called with the
            arguments as strings. Its source is the whole script, so it imports what it needs.
        options
            Of the stores: KVSTORE_EXT_OPTIONS, where limits are a minute unless given.
        server
            Python's arguments for servers and the scheduler.
        directory
            Where all processes run; that of the tests unless given.
        fork
            Whether processes may be forks, where these do the same: see support/forked.py.
        hosts
            One for each process, as Job.processes has them; without them all run on this one.
        """
        variables = {**_variables(workers, servers, options or {}), **(environment or {})}
        file = self._file(script)
        command = [str(file), *map(str, arguments)]
        starts = _starts(file, server, variables) if fork else [_interpreter, _interpreter]
        self.jobs.append(job := Job())
        how = (directory or Path.cwd(), job.changed)
        if hosts:
            variables["DMLC_PS_ROOT_URI"] = hosts[0].address
        for role, count, started, line, start in (
            ("scheduler", 1, job.scheduler, server, starts[0]),
            ("server", servers, job.servers, server, starts[0]),
            ("worker", workers, job.workers, command, starts[1]),
        ):
            variables["DMLC_ROLE"] = role
            for i in range(count):
                host = hosts[len(job.processes)] if hosts else None
                if host:
                    variables["DMLC_NODE_HOST"] = host.address
                started.append(Process(f"{role} {i}", line, variables, *how, start, host))
        return job

    def run(self, script: Path | Callable[..., None], *arguments: object, **how: Any) -> Job:
        """As `start`, then `wait`."""
        job = self.start(script, *arguments, **how)
        job.wait()
        return job

    def end(self) -> None:
        """Ends every process; returns when all are gone."""
        for job in self.jobs:
            for process in job.processes:
                process.send(signal.SIGKILL)
                process.wait()

    def _file(self, script: Path | Callable[..., None]) -> Path:
        if isinstance(script, Path):
            return script
        file = self.directory / f"{script.__name__}.py"
        call = f"{script.__name__}(*sys.argv[1:])"
        # At once as a whole: a worker of another job may be reading it.
        with tempfile.NamedTemporaryFile("w", dir=self.directory, delete=False) as new:
            new.write(f"import sys\n\n{inspect.getsource(script)}\n\n{call}\n")
        return Path(new.name).replace(file)


def _starts(script: Path, server: Sequence[str], environment: dict[str, str]) -> list[Start]:
    """How servers and workers are started: all as forks or none, since an interpreter of its own
    comes seconds later than a fork."""
    stock = tuple(server) == STOCK_SERVER
    runner = ("-m", "kvstore_ext")
    ours = tuple(server[:2]) in (P3_SERVER, runner) or Path(server[0]).parent == SCRIPTS
    if not (stock or ours) or not forked.can_fork(script, environment):
        return [_interpreter, _interpreter]
    package = "mxnet" if stock else "kvstore_ext"
    return [functools.partial(forked.Forked, package=package), forked.Forked]


def _variables(workers: int, servers: int, options: dict[str, Any]) -> dict[str, str]:
    """The environment of a job's processes, but for their roles."""
    return {
        **os.environ,
        "PYTHONPATH": python_path(),
        "OMP_NUM_THREADS": "1",  # more threads than cores only disturb each other
        "KVSTORE_EXT_OPTIONS": json.dumps({**limits(60), **options}),
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(servers),
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(free_port()),
        "DMLC_NODE_HOST": "127.0.0.1",
    }


def limits(seconds: float) -> dict[str, float]:
    """The stores' options that bound waits."""
    return {"timeout": seconds, "silence": seconds, "patience": seconds}


AT_ONCE = limits(600)  # so that a test which waits for a limit fails


def await_failure(*processes: Process, seconds: float = 30) -> None:
    """Returns when all have ended, by themselves and with a status that says that they failed."""
    statuses = {process.name: process.wait(seconds) for process in processes}
    assert all(status is not None and status > 0 for status in statuses.values()), statuses


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on, out of those that the system gives away."""
    while True:
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", random.randrange(10_000, 32_000)))
            return int(listener.getsockname()[1])
