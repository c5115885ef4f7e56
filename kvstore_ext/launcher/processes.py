"""The processes of a job, and how one of them can end."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Iterable, Mapping, Sequence

from .environment import TRACE, copied, process_environment
from .hosts import Host, deal_servers, deal_workers
from .options import Options

NOT_RUN = (126, 127)  # as a shell says it of a command that it cannot run, or does not find
_SIGNALS = 64  # of Linux


@dataclass(frozen=True)
class Process:
    """One process to start. `rank` counts within its role, and is final once addresses are known.

    mpirun and srun are processes too, of a role of that name and without a rank. `directory` is
    where it runs; None: at the launcher's working directory's path. `chosen` is what is known of
    its host where mpirun and srun choose that, in place of `host`.
    """

    role: str
    rank: int | None
    host: Host
    command: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str | None = None
    chosen: str | None = None

    @property
    def name(self) -> str:
        return self.role if self.rank is None else f"{self.role} {self.rank}"

    @property
    def where(self) -> str:
        """The host that it runs on, as far as that is known before."""
        return self.chosen or self.host.name


@dataclass(frozen=True)
class Ending:
    """How a process ended: `status` as a shell would give it, 128 + n for signal n.

    `lost`: nothing is known of it, as its host may be gone. `final`: another start would end
    likewise. `missing`: its host lacks the command or the directory, and so it never ran.
    """

    status: int
    text: str
    lost: bool = False
    final: bool = False
    missing: bool = False

    @property
    def by_signal(self) -> bool:
        """Whether a signal has ended it, or a shell says so of what it has run."""
        return 128 < self.status <= 128 + _SIGNALS


def ended_with(status: int) -> Ending:
    """Of a process that has exited."""
    return Ending(status, f"ended with exit status {status}")


def killed_by(number: int) -> Ending:
    """Of a process that a signal has ended."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "no name"
    return Ending(128 + number, f"was killed by signal {number} ({name})")


def hosts_of(processes: Iterable[Process]) -> list[Host]:
    """Returns the hosts that get a process, each once, however many files name it."""
    found = {(process.host.name, process.host.port): process.host for process in processes}
    return list(found.values())


def plan(options: Options, ambient: Mapping[str, str]) -> list[Process]:
    """Returns the job's processes: workers, servers, scheduler.

    In this order mpirun, which deals its tasks to the hosts in turn too, puts worker i where ssh
    puts it. So does srun, where the hostfile has the hosts in Slurm's own order.
    """
    hosts: Sequence[Host] = options.hosts or [Host("localhost")]
    server_hosts: Sequence[Host] = options.server_hosts or hosts
    counts = {"worker": options.workers, "server": options.servers}

    def process(role: str, rank: int, host: Host) -> Process:
        command = options.command if role == "worker" else options.server_command
        environment: dict[str, str] = process_environment(
            role,
            counts,
            {**options.environment, **options.role_environment.get(role, {})},
            ambient,
            remote=options.launcher != "local",
            interface=options.interface,
            own_servers=options.own_servers,
        )
        if options.sync_dst_dir is not None and TRACE in environment:
            environment[TRACE] = copied(environment[TRACE])
        chosen = _chosen(options, role)
        return Process(role, rank, host, command, environment, options.sync_dst_dir, chosen)

    workers = enumerate(deal_workers(hosts, options.workers))
    servers = enumerate(deal_servers(server_hosts, options.servers))
    return [
        *(process("worker", rank, host) for rank, host in workers),
        *(process("server", rank, host) for rank, host in servers),
        process("scheduler", 0, server_hosts[0]),
    ]


def _chosen(options: Options, role: str) -> str | None:
    if options.launcher not in ("mpi", "slurm"):
        return None
    if not options.hosts:
        return "a host of the batch job"
    # srun goes through the hosts in an order of its own, and mpirun goes on behind the workers.
    return "a host of the hostfile" if options.launcher == "slurm" or role != "worker" else None
