"""Starts one command a process: a supervisor on this host, or ssh that runs one on another."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
from collections import defaultdict
from typing import Any, Callable, Sequence

from .hosts import Host
from .output import Sink
from .processes import Process
from .protocol import Link
from .running import Running, StartError
from .ssh import UNREACHABLE, trial

# sshd begins to refuse connections when 10 of them have not logged in yet (MaxStartups).
_STARTS_A_HOST = 4
# Longer than a supervisor takes from the end of its input to its own (GRACE + GIVE_UP).
END_LIMIT = 10.0


class DirectStarter:
    """Starts one command a process, for the launchers local and ssh.

    `silence`: see Running. `ssh_options` are for what a user may try.
    """

    def __init__(
        self,
        command_for: Callable[[Host], list[str]],
        silence: float | None = None,
        ssh_options: Sequence[str] = (),
    ) -> None:
        self._command_for = command_for
        self._ssh_options = ssh_options
        self._silence = silence
        self._starting: defaultdict[Host, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(_STARTS_A_HOST)
        )
        self._children: list[asyncio.subprocess.Process] = []
        self._pumps: list[asyncio.Future[None]] = []

    async def open(self) -> Running | None:
        """Returns the process that starts the others, of which there is none here."""
        return None

    async def start(
        self, number: int, process: Process, sink: Sink, limit: float | None
    ) -> Running:
        """Returns the process, its supervisor ready to run it; raises StartError, and
        asyncio.TimeoutError after so many seconds, of which waiting for its turn is none."""
        async with self._starting[process.host]:
            return await asyncio.wait_for(self._start(process, sink), limit)

    async def _start(self, process: Process, sink: Sink) -> Running:
        command = self._command_for(process.host)
        child = await self._spawn(command)
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        pump = asyncio.ensure_future(_pump(child.stderr, sink))
        self._pumps.append(pump)
        link = Link(child.stdout, child.stdin)
        try:
            greeting = await link.greeting(sink.complain)
        except asyncio.CancelledError:
            # Nothing runs yet that would have to be ended with care.
            kill(child)
            raise
        if greeting is not None:
            return Running(process, process.host.name, link, sink, self._silence)
        await pump
        status = await child.wait()
        title = f"{process.name} on {process.host.name}"
        program = os.path.basename(command[0])
        how = f"{program} ended with exit status {status}"
        gone = None
        if program == "ssh" and status == UNREACHABLE:
            how = f"{how}; try: {trial(process.host, self._ssh_options)}"
            gone = process.host
        text = f"{title} could not be started: {how}"
        if gone is not None:
            raise StartError(text, status, sink, gone)
        # The host lacks the interpreter, say, or the file system that this package is on.
        lacking = process.host if program == "ssh" else None
        raise StartError(text, abs(status) or 1, sink, lacking, final=True, missing=True)

    async def close(self) -> None:
        """Ends what is left, which is nothing unless a supervisor or ssh does not answer."""
        for child in self._children:
            if child.stdin:
                child.stdin.close()
        waits = [asyncio.ensure_future(child.wait()) for child in self._children]
        if waits:
            await asyncio.wait(waits, timeout=END_LIMIT)
        for child in self._children:
            kill(child)
        tasks: list[asyncio.Future[Any]] = [*waits, *self._pumps]
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _spawn(self, command: list[str]) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        child = await spawn(command, pipe, pipe, pipe)
        self._children.append(child)
        return child


async def spawn(
    command: list[str], stdin: int, stdout: int, stderr: int
) -> asyncio.subprocess.Process:
    """Returns the started command, in a session of its own: Ctrl-C is for the launcher to handle.

    A start that is cancelled is completed first. Asyncio would look for the end of the process
    itself, take the status away from its own watcher, and print "Unknown child process".
    Raises StartError for a command that cannot be run.
    """
    start = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
        )
    )
    try:
        return await asyncio.shield(start)
    except asyncio.CancelledError:
        child = await start
        kill(child)
        await child.wait()
        raise
    except OSError as error:
        status = 127 if isinstance(error, FileNotFoundError) else 126
        text = f"{command[0]} cannot be run: {error.strerror}"
        passes = error.errno in (errno.EAGAIN, errno.ENOMEM)  # with what else the host does
        raise StartError(text, status, final=not passes) from None


def kill(child: asyncio.subprocess.Process) -> None:
    """Kills it unless it has ended. Its own `kill` looks for its end as well: see `spawn`."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)


async def _pump(stream: asyncio.StreamReader, sink: Sink) -> None:
    """What ssh or the interpreter complains about goes where the process's own output goes."""
    while True:
        data = await stream.read(65536)
        if not data:
            return
        sink.complain(data)
