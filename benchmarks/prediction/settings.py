"""What has been measured, by settings: runs of an arm that differ in their repeat alone."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Dict, List

from benchmarks.replay.arms import ARMS
from benchmarks.replay.trace import digest
from benchmarks.result_lines import read

_DEFAULTS = {"slice_elements": 0, "computes": True, "by_name": False}


@dataclass(frozen=True)
class Setting:
    """An arm under some settings.

    Attributes
    ----------
    source : str
        The figure whose results have it.
    arm, trace : str
    hosts : int
    gigabits, dilation : float
    slice_elements : int
    computes, by_name : bool
    """

    source: str
    arm: str
    trace: str
    hosts: int
    gigabits: float
    dilation: float
    slice_elements: int
    computes: bool
    by_name: bool

    def named(self, *arm: str) -> str:
        """In words, with those of an arm."""
        more = [f"{self.slice_elements} elements a slice"] if self.slice_elements else []
        more += [] if self.computes else ["no computing"]
        more += ["Trainer's order"] if self.by_name else []
        parts = [self.trace, f"{self.hosts:2} hosts", f"{self.gigabits:4g} Gbit/s", *arm, *more,
                 f"{self.dilation:g} times slower"]  # fmt: skip
        return ", ".join(" ".join(part.split()) for part in parts)

    @property
    def name(self) -> str:
        """In words."""
        return self.named(self.arm)


@dataclass(frozen=True)
class Measured:
    """Seconds of an iteration, by run."""

    setting: Setting
    seconds: List[float]

    @property
    def middle(self) -> float:
        """Their median."""
        return median(self.seconds)


def measured(directory: Path) -> List[Measured]:
    """All of the replay's in a directory of .jsonl files, in their order."""
    found: Dict[Setting, List[float]] = {}
    for file in sorted(directory.glob("*.jsonl")):
        for line in read(file):
            values: Dict[str, Any] = {**_DEFAULTS, **line}
            if "trace" not in values or "seconds" not in values or "dilation" not in values:
                continue
            # Its figure does not count it any more, either.
            key = json.loads(values["key"])
            if key[-1] != ARMS[values["arm"]].version or key[2] != digest(values["trace"]):
                continue
            names = (name for name in Setting.__dataclass_fields__ if name != "source")
            setting = Setting(file.stem, **{name: values[name] for name in names})
            found.setdefault(setting, []).append(values["seconds"])
    return [Measured(setting, seconds) for setting, seconds in found.items()]
