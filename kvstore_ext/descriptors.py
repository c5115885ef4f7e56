"""Room for a process's connections among the files that it may have open."""
from __future__ import annotations

import os
import resource

from .config import Job
from .errors import ClusterError

# Descriptors for each process that it talks to: one connection each way, and what ZeroMQ wakes a
# socket by. `make figure-growth` counts them.
_A_PEER = 3
_OTHERS = 512  # that scripts, their data loaders and libraries may have open beside
# That strangers' connections may take as well. Not all that a system may allow, which can be a
# thousand million: some programs that a script starts close as many files as there might be.
_STRANGERS = 1 << 16


def make_room(job: Job) -> None:
    """Raises this process's own limit for the job's connections, and those of strangers. 1024, as
    it mostly is, are enough for the scheduler of 168 hosts, each with a worker and a server
    (`make figure-growth`), but not beside strangers.

    Parameters
    ----------
    job
        The one that this process is about to join: its role, and how many workers and servers.

    Raises
    ------
    ClusterError
        Where the system's limit is too low, with both numbers. ps-lite would abort.
    """
    peers = {
        "worker": job.servers + 1,
        "server": job.workers + 1,
        "scheduler": job.workers + job.servers,
    }[job.role]
    least = len(os.listdir("/proc/self/fd")) + _A_PEER * peers
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < least:
        raise ClusterError(
            f"this {job.role} needs {least} open files for {peers} connections, and may have "
            f"{most}: raise the limit (ulimit -Hn, nofile in /etc/security/limits.conf, or "
            "systemd's LimitNOFILE)"
        )
    _raise_limit(least + _OTHERS)


def make_room_for_strangers() -> None:
    """Raises this process's own limit where it is not known what else needs it: each connection of
    a stranger takes a descriptor, and what is left over is the script's."""
    _raise_limit()


def _raise_limit(files: int = 0) -> None:
    """To so many, and to those of strangers, as far as the system's limit allows it."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(files, _STRANGERS)
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
