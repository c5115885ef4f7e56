"""Gives forks to processes that others start, such as a launcher: see fork_command.py.

Importing mxnet costs more than a short job, and a job that is started again imports it again.
"""
from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import threading
from pathlib import Path
from typing import Iterator, Sequence

from benchmarks.cluster import Host
from tests.support.forked import start

COMMAND = Path(__file__).with_name("fork_command.py")


class ForkDesk:
    """Answers those who come to its socket, each on a thread.

    Parameters
    ----------
    path
        Of the socket.
    hosts
        On which forks run, by DMLC_NODE_HOST; those of other names run here.

    Attributes
    ----------
    command
        What `python` is replaced by.
    environments
        Of all forks so far, by their ids.
    """

    def __init__(self, path: Path, hosts: Sequence[Host] = ()) -> None:
        # By a shell, since the launcher would put its runner into a command of Python's.
        self.command = ["sh", "-c", 'exec "$0" -S "$@"', sys.executable, str(COMMAND), str(path)]
        self.environments: dict[int, dict[str, str]] = {}
        self._hosts = {host.address: host for host in hosts}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()

    @contextlib.contextmanager
    def serve(self) -> Iterator[ForkDesk]:
        """Yields itself while it answers."""
        accepting = threading.Thread(target=self._accept, name="fork desk")
        accepting.start()
        try:
            yield self
        finally:
            self._listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # once it is shut down
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), name="fork").start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile() as requests:
            pid, arguments, environment, directory = json.loads(requests.readline())
            host = self._hosts.get(environment.get("DMLC_NODE_HOST", ""))
            output = Path(f"/proc/{pid}/fd/1")
            fork = start([directory, *arguments], environment, output, host=host)
            self.environments[fork.pid] = environment
            while fork.poll() is None:
                if select.select([connection], [], [], 0.05)[0]:  # it has ended
                    fork.kill()
            with contextlib.suppress(OSError):
                connection.sendall(str(fork.poll()).encode())
