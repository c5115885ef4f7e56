"""The command line's options, with the names that they have in MXNet's launcher too."""

from __future__ import annotations

import argparse
import os
import runpy
from typing import Any

from . import option_types as types
from .dmlc_options import add_replaced
from .environment import NOTICE
from .runner_options import add_runners

_REPEATED: dict[str, Any] = {"action": "append", "default": []}


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser; it exits with status 2 for what is wrong with one option."""
    parser = argparse.ArgumentParser(
        prog="kvstore-launch",
        description="Start a distributed training job: a scheduler, servers and workers.",
        epilog="kvstore-launch top JOBDIR shows what the processes of a running job do.",
        usage="%(prog)s -n WORKERS [-s SERVERS] [-H HOSTFILE] [--launcher NAME] ... COMMAND ...",
        allow_abbrev=False,
    )
    _add_job(parser)
    _add_processes(parser)
    _add_hosts(parser)
    _add_output(parser)
    add_replaced(parser)
    add_runners(parser)
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="run by every worker"
    )
    return parser


def _version() -> str:
    """Returns kvstore_ext's, which cannot be imported here."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "version.py")
    return str(runpy.run_path(path)["__version__"])


def _add_job(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--version", action="version", version=f"%(prog)s {_version()}")
    add("-n", "--num-workers", type=types.count, required=True, metavar="WORKERS")
    about = "default: as many as workers"
    add("-s", "--num-servers", type=types.count, metavar="SERVERS", help=about)
    about = "local, ssh, mpi or slurm; default: ssh with a hostfile, otherwise local"
    cluster = os.environ.get("DMLC_SUBMIT_CLUSTER") or None
    add("--launcher", "--cluster", type=types.launcher, default=cluster, help=about)
    _add_secure(parser)
    about = "say what would be started, and where; start nothing"
    add("--dry-run", action="store_true", help=about)
    about = "for servers after the workers; default: 10"
    add("--grace", type=types.seconds, default=10.0, metavar="SECONDS", help=about)
    about = "that a job which is told to end has for a last snapshot; default: 30"
    notice = os.environ.get(NOTICE) or None
    add("--notice", type=types.seconds, default=notice, metavar="SECONDS", help=about)
    about = "each process records here, on its own host, what happened to every slice"
    add("--trace", metavar="DIR", help=about)
    about = "with --trace: record the steps from A to before B alone"
    add("--trace-steps", type=types.steps, metavar="A:B", help=about)
    about = "start the job again after a failure, so many times at most; default: 0"
    add("--restarts", type=types.number, default=0, metavar="N", help=about)
    about = "default: 60 s; with slurm, where jobs queue, 3600 for the first process"
    add("--start-timeout", type=types.seconds, metavar="SECONDS", help=about)


def _add_secure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_mutually_exclusive_group().add_argument
    about = "encrypt what the job's processes say to each other, and keep strangers out; default: "
    about += "with ssh, mpi and slurm, not with local"
    add("--secure", action="store_const", const=True, dest="secure", help=about)
    about = "do not, where the network is trusted"
    add("--no-secure", action="store_const", const=False, dest="secure", help=about)


def _add_processes(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("what is started").add_argument
    add("--python", help="the interpreter on every host; default: the one that runs this")
    about = "mx.kv.create(NAME) makes STORE in the workers: dist_sync=p3, say; may be repeated"
    add("--replace", type=types.replacement, metavar="NAME=STORE", help=about, **_REPEATED)
    add("--server-command", type=types.words, help="default: PYTHON -m kvstore_run --serve")
    about = "for servers: a module of optimizers that workers may send; may be repeated"
    add("--trust", metavar="MODULE", help=about, **_REPEATED)
    about = "a variable for all processes, or KEY alone for one that is set here; may be repeated"
    add("--env", type=types.assignment, metavar="KEY=VALUE", help=about, **_REPEATED)
    for role in ("worker", "server"):
        about = f"the same for {role}s alone; may be repeated"
        variable = {"type": types.role_assignment, "metavar": "KEY=VALUE", **_REPEATED}
        add(f"--env-{role}", help=about, **variable)


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("hosts and network").add_argument
    about = "one 'name[:port] [slots=N]' a line; N limits its workers"
    add("-H", "--hostfile", "--host-file", metavar="FILE", help=about)
    about = "use so many hosts of the file; with --restarts others replace those that are gone"
    add("--hosts-needed", type=types.count, metavar="N", help=about)
    about = "with ssh: hosts for servers and scheduler; default: those of the workers"
    add("-SH", "--server-hostfile", metavar="FILE", help=about)
    about = "with ssh: copy the working directory to DIR on the hosts by rsync, and run there"
    add("--sync-dst-dir", type=types.far_directory, metavar="DIR", help=about)
    interface = os.environ.get("DMLC_INTERFACE") or None
    add("--interface", default=interface, help="network interface; default: $DMLC_INTERFACE")
    about = "the scheduler's; default: a free one on its host"
    add("--port", "--scheduler-port", type=types.port, default=0, help=about)
    about = "the scheduler's; default: its host's, seen by the launcher or on --interface"
    add("--host-ip", "--scheduler-ip", metavar="ADDRESS", help=about)
    about = "more options for ssh, mpirun or srun: --launcher-options='-F config'; repeatable"
    add("--launcher-options", action="extend", type=types.words, default=[], metavar="OPTIONS",
        help=about)  # fmt: skip


def _add_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("output").add_argument
    about = "default: launch-logs/DATE-TIME-PROCESS in the working directory"
    add("--log-dir", metavar="DIR", help=about)
    about = "show this worker alone, as it prints; logs have all of them"
    add("--only-rank", type=types.number, metavar="RANK", help=about)
    about = "a line each second on a terminal, each 30 s in a log, about how fast the job goes"
    add("--status", action="store_true", help=about)
    about = "serve figures of all processes to Prometheus; needs prometheus-client"
    add("--metrics-port", type=types.port, metavar="PORT", help=about)
    about = "where it listens; default: 127.0.0.1, which this host alone reaches"
    add("--metrics-address", default="127.0.0.1", metavar="ADDRESS", help=about)
    about = "say nothing but what goes wrong; what processes print is shown"
    add("-q", "--quiet", action="store_true", help=about)
    about = "between two lines about whom the start waits for; default: 30"
    add("--wait-notice", type=types.seconds, default=30.0, metavar="SECONDS", help=about)
