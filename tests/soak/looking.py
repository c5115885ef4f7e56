"""The memory, descriptors and threads of processes, and how fast they grow."""
from __future__ import annotations

from pathlib import Path
from typing import Dict, NamedTuple, Sequence

import numpy as np

# After which round; bytes of the live heap, and of anonymous memory, with what a fork shares with
# its parent; open descriptors and threads.
Look = Dict[str, int]

_ERRORS = 1.96  # standard errors within which are 95 % of a normal distribution


class Growth(NamedTuple):
    """Bytes a round, and the least and the most that they are with a confidence of 95 %."""

    bytes: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.bytes:+.2f} ({self.least:+.2f} to {self.most:+.2f})"


def look(process: int, round_: int, heap: int) -> Look:
    """A process as Linux shows it now, after this round; `heap` are bytes that it tells itself."""
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
    allocated once.

    It is the median of the slopes between any two looks, with its interval (Sen 1968, "Estimates of
    the regression coefficient based on Kendall's tau"). A single step, such as that of a queue
    which has become longer than ever, does not count; what grows again and again does.

    Parameters
    ----------
    looks
        In the order of their rounds, three or more.
    what
        "heap" or "memory".
    """
    settled = looks[len(looks) // 2 :]
    rounds, sizes = np.array([(each["round"], each[what]) for each in settled], float).T
    early, late = np.triu_indices(len(settled), 1)
    slopes = np.sort((sizes[late] - sizes[early]) / (rounds[late] - rounds[early]))
    count = len(settled)
    around = _ERRORS * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    least = max(0, int((len(slopes) - around) / 2))
    most = min(len(slopes) - 1, int(np.ceil((len(slopes) + around) / 2)))
    return Growth(float(np.median(slopes)), float(slopes[least]), float(slopes[most]))
