"""What Linux knows of the processes of a job and of a host's network: /proc, no more."""
from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Tuple

from benchmarks.cluster.namespaces import own_counters

_ESTABLISHED = "01"


def figures(process: int) -> Dict[str, Any]:
    """Descriptors, threads, bytes that are no other process's, and seconds of processors so far."""
    place = Path(f"/proc/{process}")
    # Of all threads, in nanoseconds: `stat` counts in hundredths of a second.
    times = _times(place)
    private = [
        int(line.split()[1]) for line in (place / "smaps_rollup").read_text().splitlines()
        if line.startswith("Private_")
    ]
    return {
        "descriptors": len(os.listdir(place / "fd")),
        "threads": len(times),
        "private": 1024 * sum(private),
        "processor": 1e-9 * sum(times),
    }


def beside(process: int) -> Tuple[List[int], List[int]]:
    """The other processes of a job: those of the same host, and those that are alone on theirs.

    All processes of a job have the same parent, and each host has a network of its own.
    """
    hosts = defaultdict(list)
    for each in _children(_parent(process)):
        hosts[os.readlink(f"/proc/{each}/ns/net")].append(each)
    own = hosts.pop(os.readlink(f"/proc/{process}/ns/net"))
    alone = [members[0] for members in hosts.values() if len(members) == 1]
    return [each for each in own if each != process], alone


def connections() -> int:
    """Of this host by TCP; one within the host counts twice."""
    lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[3] == _ESTABLISHED for line in lines)


def packets() -> int:
    """That this host has sent so far, acknowledgements of TCP included."""
    return own_counters()[9]


def _times(place: Path) -> List[int]:
    """Nanoseconds of each thread, but of those that end meanwhile."""
    found = []
    for task in (place / "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            found.append(int((task / "schedstat").read_text().split()[0]))
    return found


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _children(process: int) -> List[int]:
    return [
        int(each) for task in os.listdir(f"/proc/{process}/task")
        for each in Path(f"/proc/{process}/task/{task}/children").read_text().split()
    ]
