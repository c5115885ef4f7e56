"""Starts processes as forks of one that has imported kvstore_ext, with mxnet, already; those that
must know nothing of kvstore_ext, as forks of another one that has imported mxnet alone.

Importing mxnet costs more processor time than most tests. A fork begins where python would begin
with its script, and ends as python ends. One thing differs from interpreters of their own: all
forks of a session draw the same hashes of strings. With `--all` there are forks of the tests' own
scripts alone: whatever a user may start is started as by a user.
"""
from __future__ import annotations

import atexit
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Mapping, Sequence, TextIO

from benchmarks.cluster import Host
from benchmarks.replay.forking import Fork, Interpreter
from tests.support.paths import EXAMPLES, python_path

# What is read when a store or a server is made, and by `run`; SOAK_HEAPS, as a server of a soak
# starts. Others may be read on import.
READ_LATE = ("DMLC_", "PS_", "KVSTORE_EXT_", "MXNET_KVSTORE_", "PYTEST_CURRENT_TEST", "SOAK_HEAPS")
IMPORT = re.compile(r"^(?: {4})?(?:import|from) (kvstore_ext|mxnet)\b", re.MULTILINE)
MODULES = {
    # And what examples import.
    "kvstore_ext": [__name__, "kvstore_ext.mxnet_hooks.as_main", "sklearn.datasets", "sacrebleu",
                    "babel.numbers"],
    "mxnet": [__name__, "tests.launch.numpy_names", "mxnet.kvstore.kvstore_server"],
}
RUN = {"kvstore_ext": f"{__name__}:run", "mxnet": f"{__name__}:run_server"}

LIMIT = 120.0  # seconds that a test waits for anything before it fails
as_users_do = False  # set by --all

# From their first uses on, by what they have imported, and with which variables.
_interpreters: dict[tuple[str, frozenset], Interpreter] = {}
_making = threading.Lock()


def _interpreter(package: str, environment: Mapping[str, str]) -> Interpreter:
    early = {
        name: value for name, value in environment.items() if not name.startswith(READ_LATE)
    }
    key = package, frozenset(early.items())
    with _making:  # one for all jobs that start side by side
        if key not in _interpreters:
            _interpreters[key] = Interpreter(sys.executable, MODULES[package], early)
            atexit.register(_interpreters[key].close)
        return _interpreters[key]


def start(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: Path,
    host: Host | None,
) -> Fork:
    """A fork, on another host if one is given, that runs `python ARGUMENTS`, of which the first is
    a directory."""
    early = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": python_path()}
    interpreter = _interpreter("kvstore_ext", early)
    return interpreter.fork(RUN["kvstore_ext"], arguments, host, environment, output)


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
        host: Host | None = None,
        package: str = "kvstore_ext",
        two_streams: bool = False,
    ) -> None:
        self.stdout, output = _pipe()
        self.stderr, errors = _pipe() if two_streams else (None, None)
        self._fork = _interpreter(package, environment).fork(
            RUN[package],
            [str(directory), *arguments],
            host,
            environment,
            _path(output),
            None if errors is None else _path(errors),
        )
        self.pid, self.poll, self.kill = self._fork.pid, self._fork.poll, self._fork.kill
        for descriptor in (output, errors):
            if descriptor is not None:
                os.close(descriptor)

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


def _path(descriptor: int) -> Path:
    """By which another process opens it as well."""
    return Path(f"/proc/{os.getpid()}/fd/{descriptor}")


def run(directory: str, *arguments: str) -> None:
    """Runs `python ARGUMENTS` as python does."""
    import numpy as np
    from kvstore_ext.mxnet_hooks import as_main

    np.random.seed()
    os.chdir(directory)
    first, *others = arguments
    try:
        if first == "-m":
            sys.path[0] = directory
            as_main.run_module(others[0], others[1:])
        else:
            as_main.run_script(first, others)
    except Exception as error:  # which an interpreter keeps and reports before it ends
        sys.last_value = error
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)


def run_server(directory: str, *_: str) -> None:
    """Runs MXNet's own server or scheduler, as importing mxnet does."""
    from mxnet.kvstore import kvstore_server

    os.chdir(directory)
    kvstore_server._init_kvstore_server_module()
