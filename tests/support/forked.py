"""Starts processes as forks of one that has imported kvstore_ext, with mxnet, already; those that
must know nothing of kvstore_ext, as forks of another one that has imported mxnet alone.

Importing mxnet costs more processor time than most tests. A fork begins where python would begin
with its script, and ends as python ends. One thing differs from interpreters of their own: all
forks of a session draw the same hashes of strings. With `--all` there are forks of the tests' own
scripts alone: whatever a user may start is started as by a user.
"""
from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Mapping, NamedTuple, Sequence, TextIO

from tests.support.paths import EXAMPLES, python_path

# What is read when a store or a server is made, and by `run`. Others may be read on import.
READ_LATE = ("DMLC_", "PS_", "KVSTORE_EXT_", "MXNET_KVSTORE_", "PYTEST_CURRENT_TEST")
IMPORT = re.compile(r"^(?: {4})?(?:import|from) (kvstore_ext|mxnet)\b", re.MULTILINE)


LIMIT = 120.0  # seconds that a test waits for anything before it fails
as_users_do = False  # set by --all


class Request(NamedTuple):
    """A process to start, as python ARGUMENTS would."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: str


class Parent:
    """A process that has imported a package and forks, seen from the tests."""

    def __init__(self, package: str, environment: Mapping[str, str]) -> None:
        self._turn = threading.Lock()
        self._connection, theirs = multiprocessing.Pipe()
        self._popen = subprocess.Popen(
            [sys.executable, "-u", "-m", __name__, package, str(theirs.fileno())],
            env=_read_early(environment),
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # a keyboard's interrupt is for the tests, which end the forks
        )
        theirs.close()
        atexit.register(self._end)

    def fork(self, request: Request, output: int, errors: int) -> int:
        """Starts a process whose streams go to two descriptors; returns its number."""
        with self._turn:
            self._connection.send(tuple(request))
            for descriptor in (output, errors):
                send_handle(self._connection, descriptor, self._popen.pid)
            return self._receive()

    def ask(self, pid: int) -> int | None:
        """See Forked.poll; a process is forgotten once its status is known."""
        with self._turn:
            self._connection.send(pid)
            return self._receive()

    def _receive(self) -> int:
        assert self._connection.poll(LIMIT), "the parent of all forks does not answer"
        return self._connection.recv()

    def _end(self) -> None:
        self._connection.close()
        self._popen.wait(LIMIT)


# From their first uses on, by what they have imported, and with which variables.
_parents: dict[tuple[str, frozenset], Parent] = {}


def _parent(package: str, environment: Mapping[str, str]) -> Parent:
    key = package, frozenset(_read_early(environment).items())
    if key not in _parents:
        _parents[key] = Parent(package, environment)
    return _parents[key]


def _read_early(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(READ_LATE)}


def can_fork(script: Path, environment: Mapping[str, str]) -> bool:
    """Whether a fork does the same: kvstore_ext is what it imports first, from where the tests have
    it."""
    if environment["PYTHONPATH"] != python_path():
        return False
    if EXAMPLES in script.parents:
        return not as_users_do
    first = IMPORT.search(script.read_text())
    return first is not None and first[1] == "kvstore_ext"


class Forked:
    """A started fork, with what tests use of subprocess.Popen; `stderr` is None where both streams
    go to `stdout`."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        package: str = "kvstore_ext",
        two_streams: bool = False,
    ) -> None:
        self._parent = _parent(package, environment)
        self._status: int | None = None
        self.stdout, output = _pipe()
        self.stderr, errors = _pipe() if two_streams else (None, os.dup(output))
        request = Request(arguments, environment, str(directory))
        self.pid = self._parent.fork(request, output, errors)
        os.close(output)
        os.close(errors)

    def poll(self) -> int | None:
        """The exit status, or the negative number of the signal that ended it; None before."""
        if self._status is None:
            self._status = self._parent.ask(self.pid)
        return self._status

    def kill(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        latest = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > latest:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(0.01)
        return status


def _pipe() -> tuple[TextIO, int]:
    reading, writing = os.pipe()
    return os.fdopen(reading, encoding="utf-8", errors="replace"), writing


def serve(connection: Connection) -> Request:
    """What the parent does. Returns in forks alone, with what they are to run."""
    while True:
        try:
            request = connection.recv()
        except EOFError:
            sys.exit()
        if isinstance(request, int):
            ended, status = os.waitpid(request, os.WNOHANG)
            by_signal = os.WIFSIGNALED(status)
            code = -os.WTERMSIG(status) if by_signal else os.WEXITSTATUS(status)
            connection.send(code if ended else None)
            continue
        output, errors = recv_handle(connection), recv_handle(connection)
        with warnings.catch_warnings():  # Python 3.12 sees the threads that MXNet's engine has
            warnings.simplefilter("ignore", DeprecationWarning)  # and has ended while this forks
            pid = os.fork()
        if pid == 0:
            os.setsid()
            os.dup2(output, 1)
            os.dup2(errors, 2)
            os.close(output)
            os.close(errors)
            connection.send(os.getpid())
            connection.close()
            return Request(*request)
        os.close(output)
        os.close(errors)


def run(request: Request) -> None:
    """Runs it as python does."""
    import numpy as np
    from kvstore_ext.mxnet_hooks import as_main

    np.random.seed()
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.directory)
    first, *others = request.arguments
    if first == "-m":
        sys.path[0] = request.directory
        as_main.run_module(others[0], others[1:])
    else:
        as_main.run_script(first, others)


def run_server(request: Request) -> None:
    """Runs MXNet's own server or scheduler, as importing mxnet does."""
    from mxnet.kvstore import kvstore_server

    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.directory)
    kvstore_server._init_kvstore_server_module()


if __name__ == "__main__":
    _, package, descriptor = sys.argv
    if package == "mxnet":
        from tests.launch import numpy_names  # noqa: F401

    __import__(package)
    gc.freeze()  # or every fork would take all of it apart as it ends
    request = serve(Connection(int(descriptor)))
    run(request) if package == "kvstore_ext" else run_server(request)
