"""Medians and spreads of a results file."""
from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from benchmarks.replay.arms import ARMS
from benchmarks.replay.bound import least_seconds
from benchmarks.replay.trace import load

BOUND = "bound"
FEW = 3  # runs below which a median is not worth much
BUSY = 1.5  # processes that have run or waited, a processor, on a busy machine


@dataclass(frozen=True)
class Spread:
    """The median of runs and their range."""

    median: float
    least: float
    most: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(median(values), min(values), max(values), len(values))

    def times(self, factor: float) -> Spread:
        return Spread(factor * self.median, factor * self.least, factor * self.most, self.runs)

    def cell(self, digits: int = 0) -> str:
        """For a table."""
        if self.runs == 1:
            return f"{self.median:.{digits}f}"
        return f"{self.median:.{digits}f} ({self.least:.{digits}f} to {self.most:.{digits}f})"


Point = Tuple[str, float]  # an arm and what a picture has from left to right
Found = Dict[Point, Spread]  # samples a second of all workers together


def throughputs(lines: List[Dict[str, Any]], over: str = "gigabits") -> Found:
    """Of one network's runs, which differ in one setting; for each of its values also the bound's.
    """
    found: Dict[Point, List[float]] = defaultdict(list)
    for line in lines:
        trace = load(line["trace"])
        samples = line["hosts"] * trace.batch
        if "seconds" in line:
            found[line["arm"], line[over]].append(samples / line["seconds"])
        least = least_seconds(trace, line["hosts"], line["gigabits"])
        found[BOUND, line[over]] = [samples / least]
    return {point: Spread.of(values) for point, values in found.items()}


def doubts(lines: List[Dict[str, Any]], cores: int) -> List[str]:
    """Why these results say little, a warning a line; none where all is as it should be.

    Parameters
    ----------
    cores : int
        Of the machine that has measured.
    """
    loads = [line["load"] for line in lines]
    counts = Counter((line["arm"], line["gigabits"]) for line in lines if "seconds" in line)
    found = []
    # Of the last minute, and so of the run before: that alone comes to somewhat more than cores.
    if max(loads, default=0.0) > BUSY * cores:
        found.append(
            f"warning: this machine was busy: a load of {min(loads):g} to {max(loads):g} on "
            f"{cores} cores. Arms that compute more look slower than they are: measure on idle "
            "cores, into another results file"
        )
    if min(counts.values(), default=FEW) < FEW:
        found.append(
            f"warning: some of these are medians of {min(counts.values())} runs; before "
            f"you compare arms, take --repeats {FEW} or more"
        )
    return found


def table(
    lines: List[Dict[str, Any]], over: str = "gigabits", unit: str = "Gbit/s"
) -> Iterator[str]:
    """A markdown table: an arm a line, a value of a setting a column."""
    found = throughputs(lines, over)
    values = sorted({value for _, value in found})
    arms = [arm for arm in ARMS if any((arm, value) in found for value in values)]
    yield "| samples/s | " + " | ".join(f"{value:,g} {unit}" for value in values) + " |"
    yield "| --- |" + " ---: |" * len(values)
    for arm in [*arms, BOUND]:
        label = ARMS[arm].label if arm in ARMS else "bound for float32 gradients"
        cells = [found[arm, value].cell() if (arm, value) in found else "-" for value in values]
        yield f"| {label} | " + " | ".join(cells) + " |"
