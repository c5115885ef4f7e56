"""The command that runs a supervisor on another host."""

from __future__ import annotations

import shlex
from typing import Sequence

from .far_ends import supervisor_command
from .hosts import Host

# Seconds without a sign of life after which a launcher counts as gone: longer than one that lives
# may be stopped by Ctrl-Z, or wait for the file system of its logs.
SILENCE = 180.0
UNREACHABLE = 255  # the status of ssh, and of rsync over it, where the host cannot be reached

# BatchMode: fail rather than ask for a password, for which there is no terminal. ControlPath: a
# connection of its own for each process, as sshd limits the sessions in a shared one.
# ClearAllForwardings: a user's own tunnel to the host can be had once, and not by each process.
_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "4",
    "ControlPath": "none",
    "ClearAllForwardings": "yes",
    "RequestTTY": "no",
}


def ssh_program(host: Host, options: Sequence[str]) -> list[str]:
    """Returns ssh with its options; of those given twice ssh takes the first: `options` win."""
    command = ["ssh", *options]
    for name, value in _OPTIONS.items():
        command += ["-o", f"{name}={value}"]
    if host.port is not None:
        command += ["-p", str(host.port)]
    return command


def trial(host: Host, options: Sequence[str]) -> str:
    """Returns the command by which a user finds out whether this host can be reached: as it is
    tried here, without a password and without a connection that is there already."""
    kept = ("BatchMode", "ControlPath")
    words = [word for name in kept for word in ("-o", f"{name}={_OPTIONS[name]}")]
    port = ["-p", str(host.port)] if host.port is not None else []
    return shlex.join(["ssh", *options, *words, *port, host.name, "true"])


def ssh_command(host: Host, python: str, options: Sequence[str]) -> list[str]:
    """Returns the command, with `options` for ssh."""
    # The environment and the process's own command follow on the connection, so nothing but this
    # has to survive the remote shell's quoting, and nobody sees them in a list of processes.
    remote = " ".join(shlex.quote(word) for word in supervisor_command(python))
    return [*ssh_program(host, options), "--", host.name, f"exec {remote}"]
