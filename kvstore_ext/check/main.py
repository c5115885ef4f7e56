"""The check itself: from the command line to the exit status."""
from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
import tempfile

from ..launcher import option_types as types
from ..launcher.hosts import Host as Place
from ..launcher.main import check_program, make_starter
from ..launcher.options import START_TIMEOUT, Options, hosts_for, queue_timeout
from ..launcher.output import show
from ..launcher.terminal import Terminal
from .host import check_host
from .hosts import check_hosts
from .report import Report, as_json, as_text

# The launcher shows the output of this worker alone: of none, since answers are no output.
_NOBODY = -1


def main(arguments: list[str]) -> int:
    """Returns 0 where all is fit, 1 where something is wrong; exits with 2 for wrong arguments."""
    parser = _parser()
    found = parser.parse_args(arguments)
    try:
        places = _places(found)
        if places:
            check_program(found.launcher or "ssh")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if places:
        with tempfile.TemporaryDirectory(prefix="kvstore-ext-check-") as log_dir:
            report = asyncio.run(_check(_options(found, places, log_dir), places))
    else:
        if found.interface:
            os.environ["DMLC_INTERFACE"] = found.interface
        report = Report([check_host(socket.gethostname())], [], [])
    show(as_json(report) if found.json else as_text(report))
    return 0 if report.is_fit() else 1


async def _check(options: Options, places: list[Place]) -> Report:
    starter = make_starter(options, len(places), places, Terminal(options.only_rank))
    return await check_hosts(options, starter, places)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kvstore-ext --check",
        description="Tell whether this host is fit for training, or the hosts of a hostfile and "
        "the links between them, and what to do where they are not. Exits with status 0 if all is "
        "well, with 1 if something is wrong.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--json", action="store_true", help="print JSON: times in seconds, bytes a second")
    about = "the network interface that jobs will use; default: $DMLC_INTERFACE"
    add("--interface", default=os.environ.get("DMLC_INTERFACE") or None, help=about)
    add = parser.add_argument_group("several hosts, with flags as for kvstore-launch").add_argument
    add("-H", "--hostfile", metavar="FILE", help="one 'name[:port]' a line")
    about = "ssh, mpi or slurm; default: ssh with a hostfile"
    add("--launcher", "--cluster", choices=("ssh", "mpi", "slurm"), metavar="NAME", help=about)
    about = "how many, for mpi and slurm without a hostfile"
    add("-n", "--num-hosts", type=types.count, metavar="HOSTS", help=about)
    about = "the interpreter on every host; default: the one that runs this"
    add("--python", default=sys.executable, help=about)
    about = "more options for ssh, mpirun or srun, given once or more"
    add("--launcher-options", action="extend", type=types.words, default=[], metavar="OPTIONS",
        help=about)  # fmt: skip
    about = "default: 60 s; with slurm, where jobs queue, 3600 for the first host"
    add("--start-timeout", type=types.seconds, metavar="SECONDS", help=about)
    return parser


def _places(found: argparse.Namespace) -> list[Place]:
    """The hosts to start probes on, none where only this one is checked; raises ValueError."""
    launcher = found.launcher or ("ssh" if found.hostfile else None)
    if launcher is None or found.hostfile:
        if found.num_hosts is not None:
            raise ValueError("-n is for --launcher mpi or slurm without a hostfile (-H)")
        return hosts_for(launcher, found.hostfile, 1) if launcher else []
    if launcher == "ssh" or found.num_hosts is None:
        or_count = "" if launcher == "ssh" else " or -n HOSTS"
        raise ValueError(f"--launcher {launcher} needs a hostfile (-H){or_count}")
    return [Place(f"host {number}") for number in range(found.num_hosts)]


def _options(found: argparse.Namespace, places: list[Place], log_dir: str) -> Options:
    """A job of the launcher with one process a host."""
    launcher = found.launcher or "ssh"
    return Options(
        workers=len(places),
        servers=0,
        launcher=launcher,
        hosts=tuple(places if found.hostfile else ()),
        environment={},
        command=(),
        server_command=(),
        python=found.python,
        port=0,
        interface=found.interface,
        log_dir=log_dir,
        grace=0.0,
        start_timeout=found.start_timeout or START_TIMEOUT,
        queue_timeout=queue_timeout(launcher, found.start_timeout),
        launcher_options=tuple(found.launcher_options),
        only_rank=_NOBODY,
    )
