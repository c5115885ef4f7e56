"""What a worker reads when its first iteration that counts begins, and at its end."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict

from benchmarks.replay.processors import Ticks
from benchmarks.replay.segments import Segments


@dataclass(frozen=True)
class Meters:
    """Of this machine's processors, and of this host's TCP."""

    ticks: Ticks
    segments: Segments

    @classmethod
    def now(cls) -> Meters:
        return cls(Ticks.now(), Segments.now())

    def since(self, before: Meters) -> Dict[str, Any]:
        """`busy`, `sent_again` and `timeouts`, as job.py has them."""
        busy = round(self.ticks.busy_since(before.ticks), 3)
        return {"busy": busy, **self.segments.since(before.segments)}
