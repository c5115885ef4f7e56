"""The launcher itself: from the command line to the exit status."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sys
from dataclasses import replace
from typing import Sequence

from .attempts import Attempts
from .direct import DirectStarter
from .dry_run import describe
from .far_ends import supervisor_command
from .gathering import GatheringStarter
from .hosts import Host
from .job import Job, Starter
from .metrics import MetricsError, serve
from .options import Options, parse
from .output import Sink, make_log_directory, note, open_missing_streams, show
from .processes import hosts_of, plan
from .rsync import CopyingStarter
from .ssh import SILENCE, ssh_command
from .tasks_command import tasks_command
from .terminal import Terminal
from .watching import Watching

_PROGRAMS = {
    "ssh": ("ssh", "openssh-client"),
    "mpi": ("mpirun", "openmpi-bin"),
    "slurm": ("srun", "slurm-client"),
    "rsync": ("rsync", "rsync"),
}

# Open files: the launcher's own, and for a process three pipes, a log and a handle on its end, with
# as many again while it starts.
_OPEN, _OPEN_EACH = 64, 10
_OTHER_LOGS = "choose another directory by --log-dir"


def main(arguments: list[str]) -> int:
    """Returns 0, 2 for what is wrong before the start, or the status of the first failure."""
    open_missing_streams()
    try:
        os.getcwd()
    except OSError as error:
        note(f"cannot find the working directory, where processes are to run: {error.strerror}")
        return 2
    options = parse(arguments)
    try:
        check_program(options.launcher, options.python)
        if options.sync_dst_dir is not None:
            check_program("rsync")
        if options.dry_run:
            first = replace(options, hosts=options.hosts[: options.hosts_needed])
            show(describe(first, plan(first, os.environ)))
            return 0
    except OSError as error:
        note(str(error))
        return 2
    try:
        make_log_directory(options.log_dir)
    except OSError as error:
        note(f"cannot make the log directory {options.log_dir}: {error.strerror}; {_OTHER_LOGS}")
        return 2
    watching = Watching(options.log_dir)
    if options.metrics_port is not None:
        try:
            serve(watching.latest, options.metrics_address, options.metrics_port)
        except MetricsError as error:
            note(str(error))
            return 2
    return asyncio.run(run(options, watching))


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


async def run(options: Options, watching: Watching) -> int:
    """Runs the job, as often as it takes, and is watched; returns the exit status."""
    make_room(len(plan(options, os.environ)))
    terminal = Terminal(options.only_rank, options.quiet)
    say = terminal.screen.note

    def make(options: Options) -> Job:
        processes = plan(options, os.environ)
        starter = make_starter(options, len(processes), hosts_of(processes), terminal)
        job = Job(options, processes, starter, terminal)
        watching.follow(job.running)
        if not options.quiet:
            counts = f"workers: {options.workers}, servers: {options.servers}"
            say(f"{counts}, logs: {options.log_dir}{_privacy(options)}")
        return job

    watch = asyncio.ensure_future(watching.watch(terminal.screen if options.status else None, say))
    attempts = Attempts(options, make, say)
    failure = "the launcher itself has ended it"
    try:
        status = await attempts.run()
        failure = attempts.failure
        return status
    except OSError as error:
        failure = f"cannot write the log {error.filename}: {error.strerror}"
        say(f"{failure}; {_OTHER_LOGS}")
        return 2
    finally:
        watch.cancel()
        watching.conclude(failure)
        # The last words may not have been read.
        terminal.screen.close()


def make_room(processes: int) -> None:
    """Raises this process's own limit of open files as far as the system's allows it, if needed,
    and says so where that may be too low.

    Processes of this host, too, have the limit then.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN + _OPEN_EACH * processes
    if most != resource.RLIM_INFINITY and most < wanted:
        note(
            f"the launcher may need {wanted} open files for {processes} processes, and can have "
            f"{most}: raise the limit (ulimit -Hn, nofile in /etc/security/limits.conf, or "
            "systemd's LimitNOFILE)"
        )
        wanted = most
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _privacy(options: Options) -> str:
    """Returns what is to be said of who can read the job's traffic, where others may be able to."""
    if options.secure:
        unknown = ", if --server-command starts servers of kvstore_ext"
        return f"; encrypted{'' if options.own_servers else unknown}"
    return "" if options.launcher == "local" else "; not encrypted (--no-secure)"


def make_starter(
    options: Options, tasks: int, hosts: Sequence[Host], terminal: Terminal
) -> Starter:
    """Returns the way to start so many processes on these hosts that --launcher names."""
    python, extra = options.python, options.launcher_options
    if options.launcher == "local":
        return DirectStarter(lambda host: supervisor_command(python))
    if options.launcher == "ssh" and options.sync_dst_dir is not None:
        return CopyingStarter(hosts, options)
    if options.launcher == "ssh":
        return DirectStarter(lambda host: ssh_command(host, python, extra), SILENCE, extra)

    def command_for(addresses: list[str]) -> list[str]:
        return tasks_command(options, tasks, addresses)

    name = "srun" if options.launcher == "slurm" else "mpirun"
    sink = Sink(name, options.log_dir, terminal)
    queue = options.queue_timeout
    return GatheringStarter(name, command_for, options.interface, queue, sink, options.hosts)
