"""The memory, descriptors and threads of processes, and how fast they grow."""
from __future__ import annotations

from pathlib import Path
from typing import Dict, NamedTuple, Sequence

import numpy as np

# After which round; bytes of the live heap, and of anonymous memory; open descriptors and threads.
# Of forks with what they share.
Look = Dict[str, int]

_INTERVAL = 1.96  # standard errors, of a normal distribution's 95 %


class Growth(NamedTuple):
    """Bytes a round: those of the line that fits best, and how far the true ones may be from it,
    with a confidence of 95 %."""

    bytes: float
    margin: float

    def __str__(self) -> str:
        return f"{self.bytes:+.2f} ± {self.margin:.2f}"


def look(process: int, round_: int, heap: int) -> Look:
    """A process as Linux shows it now, and with what it tells of its heap."""
    directory = Path("/proc", str(process))
    lines = dict(line.split(":", 1) for line in (directory / "status").read_text().splitlines())
    return {
        "round": round_,
        "heap": heap,
        "memory": int(lines["RssAnon"].split()[0]) * 1024,
        "descriptors": len(list((directory / "fd").iterdir())),
        "threads": int(lines["Threads"]),
    }


def growth(looks: Sequence[Look], what: str) -> Growth:
    """How fast a process grows in the second half of its looks, when all has been allocated that is
    allocated once."""
    settled = looks[len(looks) // 2 :]
    rounds, sizes = np.array([(each["round"], each[what]) for each in settled], float).T
    slope, begin = np.polyfit(rounds, sizes, 1)
    apart = rounds - rounds.mean()
    variance = ((sizes - begin - slope * rounds) ** 2).sum() / max(1, len(rounds) - 2)
    return Growth(float(slope), _INTERVAL * float(np.sqrt(variance / (apart**2).sum())))
