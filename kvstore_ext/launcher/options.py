"""The command line, checked: whatever is wrong with it is said here, with exit status 2."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from dataclasses import dataclass, field

from .arguments import make_parser
from .environment import noticed, traced
from .hosts import Host, deal_workers, read_hostfile
from .job_key import given_key, is_secure
from .mistakes import check_command, check_store_options
from .output import DEFAULT_LOGS
from .protocol import DEFAULT_NOTICE
from .trace_files import check_directory
from .worker_command import through_runner

START_TIMEOUT = 60.0  # seconds that the start of a process may take, unless it is said otherwise


@dataclass(frozen=True)
class Options:
    """One job as asked for. Durations are in seconds; `hosts` is empty without a hostfile.

    `own_servers`: servers are those of kvstore_ext. `role_environment` has variables by role,
    which precede those in `environment`. `server_hosts` is empty where servers run on `hosts`.
    `hosts_needed` is how many of the hosts are used at a time; None: all of them.
    `job_key` is the user's own for a `secure` job; None: a new one for each attempt.
    `first_log_dir` is that of the first attempt, where there may be others, which are inside it.
    `sync_dst_dir` is where the processes run on other hosts, None: at the working directory's path.
    """

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
    queue_timeout: float
    launcher_options: tuple[str, ...]
    own_servers: bool = True
    role_environment: dict[str, dict[str, str]] = field(default_factory=dict)
    server_hosts: tuple[Host, ...] = ()
    sync_dst_dir: str | None = None
    only_rank: int | None = None
    quiet: bool = False
    status: bool = False
    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"
    dry_run: bool = False
    wait_notice: float = 30.0
    notice: float = DEFAULT_NOTICE
    restarts: int = 0
    first_log_dir: str | None = None
    hosts_needed: int | None = None
    secure: bool = False
    job_key: str | None = field(default=None, repr=False)


def parse(arguments: list[str]) -> Options:
    """Returns the options; prints what is wrong and exits with status 2 otherwise."""
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:  # by the shell, which waits for what may come next
        import argcomplete

        argcomplete.autocomplete(parser)
    found = parser.parse_args(arguments)
    command = found.command[1:] if found.command[:1] == ["--"] else found.command
    if not command:
        parser.error("no command for the workers, such as: python train.py --kv-store p3")
    launcher = found.launcher or ("ssh" if found.hostfile else "local")
    python = found.python or sys.executable
    trust = [word for module in found.trust for word in ("--trust", module)]
    server_command = [*(found.server_command or [python, "-m", "kvstore_run", "--serve"]), *trust]
    try:
        environment = {**dict(found.env), **dict(found.env_worker)}
        check_command(command, launcher == "local", environment.get("PATH"))
        for role in (found.env_worker, found.env_server):
            check_store_options({**os.environ, **dict(found.env), **dict(role)})
        _check_rank(found.only_rank, found.num_workers)
        if found.trace_steps and not found.trace:
            raise ValueError("--trace-steps: only with --trace DIR")
        if found.trace:
            check_directory(found.trace)
        worker_command = through_runner(command, found.replace)
        hosts = hosts_for(launcher, found.hostfile, found.num_workers)
        _check_hosts_needed(found.hosts_needed, hosts, found.num_workers)
        server_hosts = _server_hosts(launcher, found)
        job_key = given_key(os.environ, launcher)
        secure = is_secure(found.secure, launcher, job_key, not found.server_command)
    except ValueError as error:
        parser.error(str(error))
    scheduler = {"DMLC_PS_ROOT_URI": found.host_ip} if found.host_ip else {}
    return Options(
        workers=found.num_workers,
        servers=found.num_servers or found.num_workers,
        launcher=launcher,
        hosts=tuple(hosts),
        environment={
            **scheduler,
            **_width(found.only_rank),
            **traced(found.trace, found.trace_steps),
            **noticed(found.notice),
            **dict(found.env),
        },
        command=tuple(worker_command),
        server_command=tuple(server_command),
        python=python,
        port=found.port,
        interface=found.interface,
        log_dir=os.path.abspath(found.log_dir or _default_log_dir()),
        grace=found.grace,
        start_timeout=found.start_timeout or START_TIMEOUT,
        queue_timeout=queue_timeout(launcher, found.start_timeout),
        launcher_options=tuple(found.launcher_options),
        own_servers=not found.server_command,
        role_environment={"worker": dict(found.env_worker), "server": dict(found.env_server)},
        server_hosts=tuple(server_hosts),
        sync_dst_dir=found.sync_dst_dir,
        only_rank=found.only_rank,
        quiet=found.quiet,
        status=found.status and not found.quiet,
        metrics_port=found.metrics_port,
        metrics_address=found.metrics_address,
        dry_run=found.dry_run,
        wait_notice=found.wait_notice,
        notice=found.notice or DEFAULT_NOTICE,
        restarts=found.restarts,
        hosts_needed=found.hosts_needed,
        secure=secure,
        job_key=job_key,
    )


def queue_timeout(launcher: str, asked: float | None) -> float:
    """Returns the seconds until mpirun or srun has started a first process; Slurm has jobs wait in
    a queue."""
    return asked or (3600.0 if launcher == "slurm" else START_TIMEOUT)


def hosts_for(launcher: str, hostfile: str | None, workers: int) -> list[Host]:
    """Returns the hosts that the launcher is given; raises ValueError for what it cannot use."""
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


def _check_rank(rank: int | None, workers: int) -> None:
    if rank is not None and rank >= workers:
        raise ValueError(f"--only-rank: found {rank}, allowed are 0 to {workers - 1}")


def _check_hosts_needed(needed: int | None, hosts: list[Host], workers: int) -> None:
    """Raises ValueError where the hostfile has too few hosts, or some of them too few slots."""
    if needed is None:
        return
    if needed > len(hosts):
        raise ValueError(f"--hosts-needed: found {needed}, and a hostfile of {len(hosts)} hosts")
    fewest = sorted(hosts, key=lambda host: workers if host.slots is None else host.slots)
    deal_workers(fewest[:needed], workers)  # whichever are left


def _width(only_rank: int | None) -> dict[str, str]:
    """Returns the variable by which a progress bar knows the width of the launcher's terminal."""
    if only_rank is None or not sys.stdout.isatty():
        return {}
    return {"COLUMNS": str(shutil.get_terminal_size().columns)}


def _server_hosts(launcher: str, found: argparse.Namespace) -> list[Host]:
    """Returns the servers' hosts; raises ValueError for what only ssh can do."""
    for name in ("sync_dst_dir", "server_hostfile"):
        if getattr(found, name) is not None and launcher != "ssh":
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is for --launcher ssh; found --launcher {launcher}")
    return read_hostfile(found.server_hostfile) if found.server_hostfile else []


def _default_log_dir() -> str:
    return os.path.join(DEFAULT_LOGS, f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
