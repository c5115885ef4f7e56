"""Copies the working directory to the other hosts before a job starts there: --sync-dst-dir."""

from __future__ import annotations

import asyncio
import os
import shlex
from typing import Iterable, Sequence

from .direct import DirectStarter, kill, spawn
from .hosts import Host
from .output import DEFAULT_LOGS
from .running import Running, StartError
from .ssh import SILENCE, UNREACHABLE, ssh_command, ssh_program, trial


class CopyingStarter(DirectStarter):
    """Starts one ssh a process, once `directory` has been copied to each of the hosts.

    `destination` is its path there, `log_dir` a directory in it that stays here.
    """

    def __init__(
        self,
        hosts: Iterable[Host],
        destination: str,
        log_dir: str,
        python: str,
        options: Sequence[str],
    ) -> None:
        super().__init__(lambda host: ssh_command(host, python, options), SILENCE)
        self._hosts = hosts
        self._destination = destination
        self._log_dir = log_dir
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
        directory = os.getcwd()
        command = rsync_command(host, directory, self._destination, self._log_dir, self._options)
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
        if status != 0:
            reason = complaints.replace("\n", "; ")
            if status == UNREACHABLE:
                reason = f"{reason}; try: {trial(host)}"
            raise StartError(
                f"{directory} could not be copied to {self._destination} on {host.name}: rsync "
                f"ended with exit status {status}: {reason}",
                1,
            )


def rsync_command(
    host: Host, directory: str, destination: str, log_dir: str, options: Sequence[str]
) -> list[str]:
    """Returns the command, with `options` for ssh. What is only at the destination stays."""
    shell = " ".join(shlex.quote(word) for word in ssh_program(host, options))
    # rsync itself makes only the last directory of a path.
    far_end = f"mkdir -p {shlex.quote(destination)} && rsync"
    command = ["rsync", "-az", "--protect-args", f"--rsh={shell}", f"--rsync-path={far_end}"]
    inside = os.path.relpath(log_dir, directory)
    if inside.split(os.sep)[0] == DEFAULT_LOGS:
        inside = DEFAULT_LOGS  # with those of earlier jobs
    if not inside.startswith(os.pardir):
        command.append(f"--exclude=/{inside}")
    return [*command, f"{directory}/", f"{host.name}:{destination}/"]
