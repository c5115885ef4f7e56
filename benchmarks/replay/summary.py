"""Medians and spreads of a results file."""
from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any, Dict, Iterator, List, Tuple

from benchmarks.replay.arms import ARMS
from benchmarks.replay.bound import least_seconds
from benchmarks.replay.trace import load

BOUND = "bound"


@dataclass(frozen=True)
class Throughput:
    """Samples a second, of all workers together; the median of the runs and their range."""

    median: float
    least: float
    most: float
    runs: int


Point = Tuple[str, float]  # an arm and Gbit/s


def throughputs(lines: List[Dict[str, Any]]) -> Dict[Point, Throughput]:
    """Those of runs of one network and number of hosts, and at each rate the bound's."""
    found: Dict[Point, List[float]] = defaultdict(list)
    for line in lines:
        samples = line["hosts"] * load(line["trace"]).batch
        if "seconds" in line:
            found[line["arm"], line["gigabits"]].append(samples / line["seconds"])
        least = least_seconds(load(line["trace"]), line["hosts"], line["gigabits"])
        found[BOUND, line["gigabits"]] = [samples / least]
    return {
        point: Throughput(median(values), min(values), max(values), len(values))
        for point, values in found.items()
    }


def table(lines: List[Dict[str, Any]]) -> Iterator[str]:
    """A markdown table: an arm a line, a rate a column."""
    found = throughputs(lines)
    rates = sorted({rate for _, rate in found})
    arms = [arm for arm in ARMS if any((arm, rate) in found for rate in rates)]
    yield "| samples/s | " + " | ".join(f"{rate:g} Gbit/s" for rate in rates) + " |"
    yield "| --- |" + " ---: |" * len(rates)
    for arm in [*arms, BOUND]:
        label = ARMS[arm].label if arm in ARMS else "bound for float32 gradients"
        cells = [_cell(found[arm, rate]) if (arm, rate) in found else "-" for rate in rates]
        yield f"| {label} | " + " | ".join(cells) + " |"


def _cell(value: Throughput) -> str:
    if value.runs == 1:
        return f"{value.median:.0f}"
    return f"{value.median:.0f} ({value.least:.0f} to {value.most:.0f})"
