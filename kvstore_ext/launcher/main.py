"""The launcher itself: from the command line to the exit status."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from typing import Sequence

from .direct import DirectStarter
from .dry_run import describe
from .failure import JobError
from .far_ends import supervisor_command
from .gathering import GatheringStarter
from .hosts import Host
from .job import Job, Starter
from .options import Options, parse
from .output import Sink, note, show
from .processes import hosts_of, plan
from .rsync import CopyingStarter
from .ssh import SILENCE, ssh_command
from .tasks_command import tasks_command
from .terminal import Terminal

_PROGRAMS = {
    "ssh": ("ssh", "openssh-client"),
    "mpi": ("mpirun", "openmpi-bin"),
    "slurm": ("srun", "slurm-client"),
    "rsync": ("rsync", "rsync"),
}

_OTHER_LOGS = "choose another directory by --log-dir"


def main(arguments: list[str]) -> int:
    """Returns 0, 2 for what is wrong before the start, or the status of the first failure."""
    options = parse(arguments)
    try:
        check_program(options.launcher, options.python)
        if options.sync_dst_dir is not None:
            check_program("rsync")
        if options.dry_run:
            show(describe(options, plan(options, os.environ)))
            return 0
    except OSError as error:
        note(str(error))
        return 2
    try:
        os.makedirs(options.log_dir, exist_ok=True)
    except OSError as error:
        note(f"cannot make the log directory {options.log_dir}: {error.strerror}; {_OTHER_LOGS}")
        return 2
    return asyncio.run(run(options))


def check_program(name: str, python: str = sys.executable) -> None:
    """Raises FileNotFoundError, naming Debian's package, without a launcher's program, or rsync.

    The launcher `local` needs the interpreter alone.
    """
    if name == "local":
        if not shutil.which(python):
            raise FileNotFoundError(f"--python: found '{python}', which is no program here")
        return
    program, package = _PROGRAMS[name]
    if not shutil.which(program):
        raise FileNotFoundError(f"no program {program} on the PATH (Debian package: {package})")


async def run(options: Options) -> int:
    """Runs the job; a signal to the launcher counts as its failure and so ends it."""
    terminal = Terminal(options.only_rank)
    try:
        return await run_on(terminal, options)
    finally:
        terminal.screen.close()


async def run_on(terminal: Terminal, options: Options) -> int:
    """The same, which ends with words that may not have been read."""
    processes = plan(options, os.environ)
    note = terminal.screen.note
    try:
        starter = make_starter(options, len(processes), hosts_of(processes), terminal)
        job = Job(options, processes, starter, terminal)
    except OSError as error:
        note(f"cannot write the log {error.filename}: {error.strerror}; {_OTHER_LOGS}")
        return 2
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        failure = JobError(f"{number.name} has ended the job", 128 + number)
        act = job.tell if number == signal.SIGTERM else job.fail
        loop.add_signal_handler(number, act, failure)
    if not options.quiet:
        note(f"workers: {options.workers}, servers: {options.servers}, logs: {options.log_dir}")
    try:
        await job.run()
    except JobError as failure:
        note(str(failure))
        lines = failure.sink.last_lines() if failure.sink else []
        if failure.sink and lines:
            where = f"{failure.whose} (all are in {failure.sink.path}):"
            note("\n    ".join([where, *lines]))
        return failure.status
    return 0


def make_starter(
    options: Options, tasks: int, hosts: Sequence[Host], terminal: Terminal
) -> Starter:
    """Returns the way to start so many processes on these hosts that --launcher names."""
    python, extra = options.python, options.launcher_options
    if options.launcher == "local":
        return DirectStarter(lambda host: supervisor_command(python))
    if options.launcher == "ssh" and options.sync_dst_dir is not None:
        return CopyingStarter(hosts, options.sync_dst_dir, options.log_dir, python, extra)
    if options.launcher == "ssh":
        return DirectStarter(lambda host: ssh_command(host, python, extra), SILENCE)

    def command_for(addresses: list[str]) -> list[str]:
        return tasks_command(options, tasks, addresses)

    name = "srun" if options.launcher == "slurm" else "mpirun"
    sink = Sink(name, options.log_dir, terminal)
    return GatheringStarter(name, command_for, options.interface, python, sink)
