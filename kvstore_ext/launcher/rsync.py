"""Copies the working directory to the other hosts before a job starts there: --sync-dst-dir."""

from __future__ import annotations

import asyncio
import math
import os
import shlex
from typing import Iterable

from .direct import DirectStarter, kill, spawn
from .environment import TRACE, copied
from .hosts import Host
from .options import Options
from .output import DEFAULT_LOGS
from .running import Running, StartError
from .ssh import SILENCE, UNREACHABLE, ssh_command, ssh_program, trial

# Exit statuses of rsync whose far end says nothing: of ssh, and of its own two limits.
_GONE = (UNREACHABLE, 30, 35)
# What it may say instead where a connection breaks; but also of a full disk.
_BROKEN = (10, 12)
# Where a file that it was about to copy is no longer there, as an editor's is.
_VANISHED = 24


class CopyingStarter(DirectStarter):
    """Starts one ssh a process, once the directory has been copied to each of the hosts."""

    def __init__(self, hosts: Iterable[Host], options: Options) -> None:
        python, extra = options.python, options.launcher_options
        super().__init__(lambda host: ssh_command(host, python, extra), SILENCE, extra)
        self._hosts = hosts
        self._options = options

    async def open(self) -> Running | None:
        """Returns None, once all hosts have the directory; raises StartError."""
        copies = [asyncio.ensure_future(self._copy_to(host)) for host in self._hosts]
        try:
            await asyncio.gather(*copies)
        finally:
            for copy in copies:
                copy.cancel()
            await asyncio.gather(*copies, return_exceptions=True)
        return None

    async def _copy_to(self, host: Host) -> None:
        command = rsync_command(host, self._options)
        nowhere, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        child = await spawn(command, nowhere, nowhere, pipe)
        assert child.stderr is not None
        try:
            complaints = (await child.stderr.read()).decode(errors="replace").strip()
            status = await child.wait()
        except asyncio.CancelledError:
            kill(child)
            await child.wait()
            raise
        if status not in (0, _VANISHED):
            reason = complaints.replace("\n", "; ")
            is_gone = status in _GONE
            if is_gone:
                reason = f"{reason}; try: {trial(host, self._ssh_options)}"
            raise StartError(
                f"{os.getcwd()} could not be copied to {self._options.sync_dst_dir} on "
                f"{host.name}: rsync ended with exit status {status}: {reason}",
                1,
                host=host if is_gone else None,
                final=False if status in _BROKEN else None,
            )


def rsync_command(host: Host, options: Options) -> list[str]:
    """Returns the command. What is only at the destination stays, logs and traces stay here.

    It gives up a host from which nothing has come for as long as a process may take to start.
    """
    directory, destination = os.getcwd(), options.sync_dst_dir
    assert destination is not None
    shell = " ".join(shlex.quote(word) for word in ssh_program(host, options.launcher_options))
    # rsync itself makes only the last directory of a path.
    far_end = f"mkdir -p {shlex.quote(destination)} && rsync"
    command = ["rsync", "-az", "--protect-args", f"--rsh={shell}", f"--rsync-path={far_end}"]
    command.append(f"--timeout={math.ceil(options.start_timeout)}")
    stay = [os.path.relpath(options.first_log_dir or options.log_dir, directory)]
    if TRACE in options.environment:
        stay.append(copied(options.environment[TRACE]))
    for path in stay:
        if path.split(os.sep)[0] == DEFAULT_LOGS:
            path = DEFAULT_LOGS  # with those of earlier jobs
        if path != os.curdir and not path.startswith((os.pardir, os.sep)):
            command.append(f"--exclude=/{path}")
    return [*command, f"{directory}/", f"{host.name}:{destination}/"]
