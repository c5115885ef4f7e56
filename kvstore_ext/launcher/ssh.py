"""The command that runs a supervisor on another host."""

from __future__ import annotations

import shlex
from typing import Sequence

from .far_ends import supervisor_command
from .hosts import Host

# BatchMode: fail rather than ask for a password, for which there is no terminal. ControlPath: a
# connection of its own for each process, as sshd limits the sessions in a shared one.
_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "4",
    "ControlPath": "none",
    "RequestTTY": "no",
}


def ssh_command(host: Host, python: str, options: Sequence[str]) -> list[str]:
    """Returns the command; of options given twice ssh takes the first, so `options` win."""
    command = ["ssh", *options]
    for name, value in _OPTIONS.items():
        command += ["-o", f"{name}={value}"]
    if host.port is not None:
        command += ["-p", str(host.port)]
    # The environment and the process's own command follow on the connection, so nothing but this
    # has to survive the remote shell's quoting, and nobody sees them in a list of processes.
    remote = " ".join(shlex.quote(word) for word in supervisor_command(python))
    return [*command, "--", host.name, f"exec {remote}"]
