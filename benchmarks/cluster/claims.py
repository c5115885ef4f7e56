"""Which cluster belongs to whom.

Clusters have numbers. Who makes one holds a lock on the file of its number, which the kernel takes
away from a process that ends, however it ends. So a number whose lock is free belongs to nobody,
and what bears it was left by somebody who was killed.
"""
from __future__ import annotations

import fcntl
import re
import secrets
from pathlib import Path
from typing import IO, Optional

from benchmarks.cluster import namespaces

LOCKS = Path("/run/kvstore_ext/clusters")
MOST = 1000


class Claim:
    """A number for a cluster that nobody else has, until `release` or the end of the process."""

    def __init__(self) -> None:
        LOCKS.mkdir(parents=True, exist_ok=True)
        _remove_leftovers()
        for number in range(MOST):
            lock = _lock(number)
            if lock is not None:
                self.number = number
                self._once = secrets.token_hex(3)  # no later cluster has the same names
                self._lock = lock
                self.remove_all()  # what a process left that was killed this moment
                return
        raise namespaces.ClusterError(f"{MOST} clusters are in use")

    def namespace(self, part: str) -> str:
        """The full name of one of this cluster's namespaces."""
        return f"{namespaces.PREFIX}-{self.number}-{self._once}-{part}"

    def remove_all(self) -> None:
        """Removes the namespaces of the cluster, with what runs in them."""
        _remove(self.number)

    def release(self) -> None:
        """Gives the number back."""
        self._lock.close()


def _lock(number: int) -> Optional[IO[str]]:
    # Not inherited by what this process starts. A fork that never becomes another program would
    # keep the lock, and therefore the cluster, as long as it lives.
    file = (LOCKS / str(number)).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _number_of(namespace: str) -> Optional[int]:
    found = re.match(f"{namespaces.PREFIX}-([0-9]+)-", namespace)
    return int(found[1]) if found else None


def _remove(number: int) -> None:
    for name in namespaces.names():
        if _number_of(name) == number:
            namespaces.remove(name)


def _remove_leftovers() -> None:
    for number in {_number_of(name) for name in namespaces.names()} - {None}:
        assert number is not None
        lock = _lock(number)
        if lock is not None:
            with lock:
                _remove(number)
