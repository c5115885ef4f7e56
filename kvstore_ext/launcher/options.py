"""The command line, checked: whatever is wrong with it is said here, with exit status 2."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import time
from dataclasses import dataclass

from .environment import OWN_NAMES
from .hosts import Host, deal_workers, read_hostfile
from .worker_command import through_runner

_TRUST = "for servers: a module of optimizers that workers may send; may be repeated"

LAUNCHERS = ("local", "ssh", "mpi", "slurm")


@dataclass(frozen=True)
class Options:
    """One job as asked for. Durations are in seconds; `hosts` is empty without a hostfile."""

    workers: int
    servers: int
    launcher: str
    hosts: tuple[Host, ...]
    environment: dict[str, str]
    command: tuple[str, ...]
    server_command: tuple[str, ...]
    python: str
    port: int
    interface: str | None
    log_dir: str
    grace: float
    start_timeout: float
    launcher_options: tuple[str, ...]


def parse(arguments: list[str]) -> Options:
    """Returns the options; prints what is wrong and exits with status 2 otherwise."""
    parser = _parser()
    found = parser.parse_args(arguments)
    command = found.command[1:] if found.command[:1] == ["--"] else found.command
    if not command:
        parser.error("no command for the workers, such as: python train.py --kv-store p3")
    launcher = found.launcher or ("ssh" if found.hostfile else "local")
    python = found.python or sys.executable
    trust = [word for module in found.trust for word in ("--trust", module)]
    server_command = [*(found.server_command or [python, "-m", "kvstore_ext.server"]), *trust]
    start_timeout = found.start_timeout or (3600.0 if launcher == "slurm" else 60.0)
    try:
        worker_command = through_runner(command, found.replace)
        hosts = _hosts(launcher, found.hostfile, found.num_workers)
    except ValueError as error:
        parser.error(str(error))
    return Options(
        workers=found.num_workers,
        servers=found.num_servers or found.num_workers,
        launcher=launcher,
        hosts=tuple(hosts),
        environment=dict(found.env),
        command=tuple(worker_command),
        server_command=tuple(server_command),
        python=python,
        port=found.port,
        interface=found.interface,
        log_dir=os.path.abspath(found.log_dir or _default_log_dir()),
        grace=found.grace,
        start_timeout=start_timeout,
        launcher_options=tuple(found.launcher_options),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kvstore-launch",
        description="Start a distributed training job: a scheduler, servers and workers.",
        usage="%(prog)s -n WORKERS [-s SERVERS] [-H HOSTFILE] [--launcher NAME] ... COMMAND ...",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-n", "--num-workers", type=_count, required=True, metavar="WORKERS")
    add("-s", "--num-servers", type=_count, metavar="SERVERS", help="default: as many as workers")
    add("-H", "--hostfile", help="one 'name[:port] [slots=N]' a line; N limits its workers")
    add("--launcher", choices=LAUNCHERS, help="default: ssh with a hostfile, otherwise local")
    add("--env", type=_assignment, action="append", default=[], metavar="KEY=VALUE")
    add(
        "--replace",
        type=_replacement,
        action="append",
        default=[],
        metavar="NAME=STORE",
        help="mx.kv.create(NAME) makes STORE in the workers: dist_sync=p3, say; may be repeated",
    )
    add("--log-dir", help="default: launch-logs/DATE-TIME-PROCESS in the working directory")
    add("--grace", type=_seconds, default=10.0, help="for servers after the workers; default: 10")
    add("--start-timeout", type=_seconds, help="default: 60 s; slurm, where jobs queue: 3600")
    add("--python", help="the interpreter on every host; default: the one that runs this")
    add("--server-command", type=_words, help="default: PYTHON -m kvstore_ext.server")
    add("--trust", action="append", default=[], metavar="MODULE", help=_TRUST)
    add("--port", type=_port, default=0, help="the scheduler's; default: a free one on its host")
    interface = os.environ.get("DMLC_INTERFACE") or None
    add("--interface", default=interface, help="network interface; default: $DMLC_INTERFACE")
    add(
        "--launcher-options",
        type=_words,
        default=[],
        help="more options for ssh, mpirun or srun: --launcher-options='-F my_ssh_config'",
    )
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="run by every worker")
    return parser


def _hosts(launcher: str, hostfile: str | None, workers: int) -> list[Host]:
    if hostfile is None:
        if launcher == "ssh":
            raise ValueError("--launcher ssh needs a hostfile (-H)")
        return []
    if launcher == "local":
        raise ValueError("--launcher local takes no hostfile (-H)")
    hosts = read_hostfile(hostfile)
    if launcher == "ssh":
        deal_workers(hosts, workers)
    elif any(host.port or host.slots for host in hosts):
        raise ValueError(f"hostfile {hostfile}: ports and slots= are for --launcher ssh only")
    return hosts


def _default_log_dir() -> str:
    return os.path.join("launch-logs", f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")


def _count(text: str) -> int:
    if not re.fullmatch(r"\d+", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found '{text}', allowed are whole numbers from 1")
    return int(text)


def _port(text: str) -> int:
    if not re.fullmatch(r"\d+", text) or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"found '{text}', allowed are 1 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d*)?", text) or not 0 < float(text) <= 1e6:
        raise argparse.ArgumentTypeError(f"found '{text}', allowed are seconds above 0")
    return float(text)


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise argparse.ArgumentTypeError(f"found '{text}', allowed is KEY=VALUE")
    if name in OWN_NAMES:
        raise argparse.ArgumentTypeError(f"{name} is set by the launcher (see -n, -s, --port)")
    return name, value


def _replacement(text: str) -> str:
    # Which stores there are only the runner knows: the launcher runs without kvstore_ext.
    if not re.fullmatch(r"\w+=\w+", text):
        raise argparse.ArgumentTypeError(f"found '{text}', allowed is NAME=STORE")
    return text


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from None
    if not words:
        raise argparse.ArgumentTypeError("found nothing but blanks")
    return words
