"""How busy the processors of this machine are, which all hosts of a cluster share."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List

_IDLE, _WAITING = 3, 4  # places in the first line of /proc/stat, see proc_stat(5)


@dataclass(frozen=True)
class Ticks:
    """Of all processors, since the machine started."""

    busy: int
    all: int

    @classmethod
    def now(cls) -> Ticks:
        first, _, _ = Path("/proc/stat").read_text().partition("\n")
        # What guests took is in what users took, and would count twice.
        numbers = [int(number) for number in first.split()[1:9]]
        return cls(sum(numbers) - numbers[_IDLE] - numbers[_WAITING], sum(numbers))

    def busy_since(self, before: Ticks) -> float:
        """The share of the processors' time, from 0 to 1."""
        return (self.busy - before.busy) / max(1, self.all - before.all)


def described(lines: List[Dict[str, Any]]) -> str:
    """How busy they were in these runs; nothing where no line has it."""
    shares = [100 * line["busy"] for line in lines if "busy" in line]
    if not shares:
        return ""
    return f"processors were busy for {min(shares):.0f} to {max(shares):.0f} % of the iterations"
