"""The memory, descriptors and threads of processes, and how fast they grow."""
from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Sequence, Tuple

import numpy as np

from tests.support.heap import told

# Bytes of the live heap, and of anonymous memory; open descriptors and threads. Of forks with what
# they share.
Look = Dict[str, int]


def look(process: int, heaps: str) -> Look:
    """A process as Linux shows it now, and as it tells of its heap in a directory."""
    directory = Path("/proc", str(process))
    lines = dict(line.split(":", 1) for line in (directory / "status").read_text().splitlines())
    return {
        "heap": told(heaps, process),
        "memory": int(lines["RssAnon"].split()[0]) * 1024,
        "descriptors": len(list((directory / "fd").iterdir())),
        "threads": int(lines["Threads"]),
    }


def growth(looks: Sequence[Tuple[int, Look]], what: str) -> float:
    """How much a process has grown by a round, on the line that fits its looks best.

    `looks` has the round of each. The first quarter is left out, in which all is allocated that is
    allocated once.
    """
    settled: List[Tuple[int, int]] = [(round, each[what]) for round, each in looks]
    settled = settled[len(settled) // 4 :]
    rounds, sizes = np.array(settled, float).T
    return float(np.polyfit(rounds, sizes, 1)[0])
