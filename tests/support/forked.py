"""Starts the processes of jobs as forks of one that has imported kvstore_ext, with mxnet, already.

Importing mxnet costs more processor time than most tests. A fork begins where python would begin
with its script, and ends as python ends. Two things differ from interpreters of their own: all
forks of a session draw the same hashes of strings, and `-m` looks for modules in the directory of
the tests rather than in that of the fork.
"""
from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import re
import subprocess
import sys
import time
import warnings
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Mapping, NamedTuple, Sequence

from tests.support.paths import EXAMPLES, python_path
from tests.support.processes import LIMIT

# What is read when a store or a server is made, and by `run`. Others may be read on import.
READ_LATE = ("DMLC_", "PS_", "KVSTORE_EXT_", "MXNET_KVSTORE_", "PYTEST_CURRENT_TEST")
IMPORT = re.compile(r"^(?: {4})?(?:import|from) (kvstore_ext|mxnet)\b", re.MULTILINE)


class Request(NamedTuple):
    """A process to start, as python ARGUMENTS would."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: str


class Parent:
    """The process that forks, seen from the tests."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = _read_early(environment)
        self._connection, theirs = multiprocessing.Pipe()
        self._popen = subprocess.Popen(
            [sys.executable, "-u", "-m", __name__, str(theirs.fileno())],
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # a keyboard's interrupt is for the tests, which end the forks
        )
        theirs.close()
        atexit.register(self._end)

    def fork(self, request: Request, output: int) -> int:
        """Starts a process whose streams both go to a descriptor; returns its number."""
        self._connection.send(tuple(request))
        send_handle(self._connection, output, self._popen.pid)
        return self._receive()

    def ask(self, pid: int) -> int | None:
        """See Forked.poll; a process is forgotten once its status is known."""
        self._connection.send(pid)
        return self._receive()

    def _receive(self) -> int:
        assert self._connection.poll(LIMIT), "the parent of all forks does not answer"
        return self._connection.recv()

    def _end(self) -> None:
        self._connection.close()
        self._popen.wait(LIMIT)


_parents: list[Parent] = []  # one, from the first use on


def _parent(environment: Mapping[str, str]) -> Parent:
    if not _parents:
        _parents.append(Parent(environment))
    return _parents[0]


def _read_early(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(READ_LATE)}


def can_fork(script: Path, environment: Mapping[str, str]) -> bool:
    """Whether a fork does the same: kvstore_ext is what it imports first, from where the tests have
    it, with these variables.

    Examples are run as users run them.
    """
    first = IMPORT.search(script.read_text())
    return (
        first is not None
        and first[1] == "kvstore_ext"
        and EXAMPLES not in script.parents
        and environment["PYTHONPATH"] == python_path()
        and _read_early(environment) == _parent(environment).environment
    )


class Forked:
    """A started fork, with what tests use of subprocess.Popen."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], directory: Path
    ) -> None:
        self._parent = _parent(environment)
        self._status: int | None = None
        reading, writing = os.pipe()
        self.stdout = os.fdopen(reading, encoding="utf-8", errors="replace")
        self.pid = self._parent.fork(Request(arguments, environment, str(directory)), writing)
        os.close(writing)

    def poll(self) -> int | None:
        """The exit status, or the negative number of the signal that ended it; None before."""
        if self._status is None:
            self._status = self._parent.ask(self.pid)
        return self._status

    def wait(self, timeout: float) -> int:
        latest = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > latest:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(0.01)
        return status


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
        output = recv_handle(connection)
        with warnings.catch_warnings():  # Python 3.12 sees the threads that MXNet's engine has
            warnings.simplefilter("ignore", DeprecationWarning)  # and has ended while this forks
            pid = os.fork()
        if pid == 0:
            os.setsid()
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            connection.send(os.getpid())
            connection.close()
            return Request(*request)
        os.close(output)


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
        as_main.run_module(others[0], others[1:])
    else:
        as_main.run_script(first, others)


if __name__ == "__main__":
    import kvstore_ext  # noqa: F401

    gc.freeze()  # or every fork would take all of it apart as it ends
    run(serve(Connection(int(sys.argv[1]))))
