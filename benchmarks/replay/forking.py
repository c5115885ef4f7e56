"""Interpreters that have imported what processes need, and start these as forks, here or on hosts.

Importing mxnet takes two seconds of a processor; a run of four hosts has nine processes. So one
interpreter imports it for all runs, and forks. It moves into a host's namespace before each fork,
so that every thread of the fork is there. Forks end with their interpreter, and that ends with the
process that started it, however that ends. tests/support/forked.py starts its processes so, too.
"""
from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set

from benchmarks.cluster import Host

LIMIT = 120.0  # seconds that an answer may take; importing mxnet takes two of them
ROOT = Path(__file__).resolve().parents[2]
_NAMESPACES = Path("/run/netns")  # where iproute2 keeps those with names
_UNTIL_THE_END = {"builtins", "sys", "__main__"}  # which Python itself uses after all the others
_CLONE_NEWNET, _CLONE_NEWUTS, _PR_SET_PDEATHSIG = 0x40000000, 0x04000000, 1


class InterpreterError(Exception):
    """An interpreter cannot be started, has ended or does not answer."""


class Interpreter:
    """An interpreter that forks, seen from the process that started it. Thread-safe.

    Parameters
    ----------
    python : str
        Its executable.
    modules : sequence of str
        What it imports before it forks.
    environment : dict
        While it imports; forks have environments of their own.
    """

    def __init__(
        self, python: str, modules: Sequence[str], environment: Dict[str, str]
    ) -> None:
        own, theirs = socket.socketpair()
        own.settimeout(LIMIT)
        self._turn = threading.Lock()
        # No pipe, which would fill.
        self._output = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        with theirs:
            self._process = subprocess.Popen(
                [python, "-u", "-m", __name__, str(theirs.fileno()), *modules],
                cwd=ROOT,
                env={**environment, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # a keyboard's interrupt is for the process that started it
            )
        self._requests = own.makefile("w")
        self._answers = own.makefile("r")
        own.close()
        what = f"{python} cannot import {', '.join(modules)}"
        try:
            ready = bool(self._answers.readline())
        except socket.timeout as error:
            self._process.kill()
            raise InterpreterError(f"{what} within {LIMIT:g} s: {self._last_line()}") from error
        if not ready:
            raise InterpreterError(f"{what}: {self._last_line()}")

    def fork(
        self,
        function: str,
        arguments: Sequence[str],
        host: Optional[Host],
        environment: Mapping[str, str],
        output: Path,
        errors: Optional[Path] = None,
    ) -> Fork:
        """Starts a process that calls `module:function` with arguments.

        Parameters
        ----------
        host : Host, optional
            Where it runs; here without one.
        output, errors : Path
            Files or pipes that its streams are added to; errors go to `output` without another.
        """
        request = {
            "function": function,
            "arguments": list(arguments),
            "namespace": host and host.namespace,
            "address": host and host.address,
            "environment": dict(environment),
            "streams": [str(output), str(errors or output)],
        }
        return Fork(self, int(self._ask(request)), output)

    def poll(self, pid: int) -> Optional[int]:
        """A fork's exit status, negative for a signal; None while it runs."""
        return self._ask({"pid": pid})

    def close(self) -> None:
        """Ends it and all of its forks."""
        with suppress(OSError):
            self._requests.close()
            self._answers.close()
        self._end()
        self._output.close()

    def _end(self) -> None:
        try:
            self._process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its forks end with it
            self._process.wait()

    def _last_line(self) -> str:
        """Of what it has written, once it has ended."""
        self._end()
        self._output.seek(0)
        return (self._output.read().strip().splitlines() or ["it says nothing"])[-1]

    def _ask(self, request: Dict[str, Any]) -> Any:
        try:
            with self._turn:
                self._requests.write(json.dumps(request) + "\n")
                self._requests.flush()
                answer = self._answers.readline()
        except socket.timeout as error:
            raise InterpreterError(
                f"an interpreter that starts processes has not answered for {LIMIT:g} s"
            ) from error
        except OSError:
            answer = ""
        if not answer:
            raise InterpreterError("an interpreter that starts processes has ended")
        return json.loads(answer)


class Fork:
    """A started process."""

    def __init__(self, interpreter: Interpreter, pid: int, output: Path) -> None:
        self.pid = pid
        self.output = output
        self._interpreter = interpreter
        self._status: Optional[int] = None

    def poll(self) -> Optional[int]:
        """The exit status, negative for a signal; None while it runs."""
        if self._status is None:
            self._status = self._interpreter.poll(self.pid)
        return self._status

    def kill(self) -> None:
        """Ends it and its children, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)


def _serve(connection: socket.socket, modules: Sequence[str]) -> None:
    """What the interpreter does. Returns in no process."""
    imported: Set[str] = set()
    atexit.register(_forget, imported)  # which comes after whatever else is registered
    before = dict(os.environ)
    for module in modules:
        importlib.import_module(module)
    # What importing sets, as kvstore_ext does, is read later too.
    set_here = {name: text for name, text in os.environ.items() if before.get(name) != text}
    # Or every fork would take all of it apart as it ends, in memory of its own.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(gc.get_objects()))
    imported.update(set(sys.modules) - _UNTIL_THE_END)
    gc.freeze()
    requests, answers = connection.makefile("r"), connection.makefile("w")
    running: List[int] = []
    home = Path(f"/proc/self/fd/{os.open('/proc/self/ns/net', os.O_RDONLY)}")
    _answer(answers, "ready")
    for line in requests:
        request = json.loads(line)
        if "pid" in request:
            ended, status = os.waitpid(request["pid"], os.WNOHANG)
            if ended:
                running.remove(ended)
            by_signal = os.WIFSIGNALED(status)
            code = -os.WTERMSIG(status) if by_signal else os.WEXITSTATUS(status)
            _answer(answers, code if ended else None)
            continue
        if request["namespace"]:
            _enter(_NAMESPACES / request["namespace"])
        parent = os.getpid()
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        streams = [os.open(name, append, 0o644) for name in request["streams"]]
        with warnings.catch_warnings():  # Python 3.12 sees the threads that MXNet's engine has
            warnings.simplefilter("ignore", DeprecationWarning)  # and has ended while this forks
            pid = os.fork()
        if pid == 0:
            connection.close()
            _run(request, parent, streams, set_here)
        for stream in streams:
            os.close(stream)
        os.setpgid(pid, pid)  # with children of its own
        if request["namespace"]:
            _enter(home)  # whoever stays in a host's namespace is ended with the host
        running.append(pid)
        _answer(answers, pid)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os._exit(0)


def _forget(imported: Set[str]) -> None:
    for name in imported:
        sys.modules.pop(name, None)


def _answer(stream: Any, value: Any) -> None:
    stream.write(json.dumps(value) + "\n")
    stream.flush()


def _enter(namespace: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with namespace.open() as file:
        if libc.setns(file.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


def die_with(parent: int) -> None:
    """Has the kernel kill this process when its parent ends, or ends it where that has gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _run(
    request: Dict[str, Any], parent: int, streams: Sequence[int], set_here: Dict[str, str]
) -> None:
    """Runs a fork to its end, as the interpreter would run a script."""
    die_with(parent)
    if request["address"]:
        # Horovod listens where its host's name leads to, so that has to be this host's address.
        ctypes.CDLL(None).unshare(_CLONE_NEWUTS)
        socket.sethostname(request["address"])
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update({**set_here, **request["environment"]})
    module, _, name = request["function"].partition(":")
    try:
        getattr(importlib.import_module(module), name)(*request["arguments"])
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # without a word to the others, for which it might wait
    sys.exit()


if __name__ == "__main__":
    connection = socket.socket(fileno=int(sys.argv[1]))
    del sys.argv[1:2]
    _serve(connection, sys.argv[1:])
