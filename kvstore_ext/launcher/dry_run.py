"""What a job would start, and where: --dry-run."""

from __future__ import annotations

import shlex
from typing import Sequence

from .far_ends import supervisor_command
from .job_key import NAME as JOB_KEY
from .options import Options
from .processes import Process, hosts_of
from .rsync import rsync_command
from .ssh import ssh_command
from .tasks_command import tasks_command

# What tasks of mpirun and srun are told, and only known once the launcher listens.
_ADDRESSES = ["LAUNCHER:PORT"]


def describe(options: Options, processes: Sequence[Process]) -> str:
    """Returns the lines to print: every process, its environment, and what starts it.

    Ranks within a host, addresses and ports follow when the hosts have been asked for free ports.
    """
    lines = []
    for process in processes:
        lines.append(f"{process.name} on {process.where}: {_words(process.command)}")
    lines += ["", "environment:"]
    common = dict(processes[0].environment)
    for process in processes:
        common = {k: v for k, v in common.items() if process.environment.get(k) == v}
    lines += _assignments("all", common)
    if options.secure:
        lines.append(f"  all: {JOB_KEY}, a secret")
    for role in ("worker", "server", "scheduler"):
        own = next(process.environment for process in processes if process.role == role)
        lines += _assignments(role, {k: v for k, v in own.items() if k not in common})
    commands = [f"  {_words(command)}" for command in _commands(options, processes)]
    lines += ["", "started by:", *commands]
    return "\n".join(lines)


def _commands(options: Options, processes: Sequence[Process]) -> list[list[str]]:
    python, extra = options.python, options.launcher_options
    if options.launcher == "local":
        return [supervisor_command(python)]
    if options.launcher != "ssh":
        return [tasks_command(options, len(processes), _ADDRESSES)]
    hosts = hosts_of(processes)
    commands = []
    if options.sync_dst_dir is not None:
        commands = [rsync_command(host, options) for host in hosts]
    return [*commands, *(ssh_command(host, python, extra) for host in hosts)]


def _assignments(who: str, variables: dict[str, str]) -> list[str]:
    return [f"  {who}: {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]


def _words(command: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) for word in command)
