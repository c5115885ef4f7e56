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


def make_room(job: Job) -> None:
    """Raises this process's own limit as far as the job's connections need it and the system's
    allows it. 1024, as it mostly is, are enough for the scheduler of 168 hosts, each with a worker
    and a server (`make figure-growth`).

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
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < least:
        raise ClusterError(
            f"this {job.role} needs {least} open files for {peers} connections, and may have "
            f"{most}: raise the limit (ulimit -Hn, nofile in /etc/security/limits.conf, or "
            "systemd's LimitNOFILE)"
        )
    wanted = least + _OTHERS if most == resource.RLIM_INFINITY else min(least + _OTHERS, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def make_all_room() -> None:
    """Raises this process's own limit to the system's: where strangers may reach its ports, each of
    their connections takes a descriptor, and what is left over is the script's."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now != most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
