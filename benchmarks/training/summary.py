"""Curves of several seeds in one, and the time that a score takes."""
from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from benchmarks.replay.summary import Spread

Curve = Sequence[Tuple[float, float, float]]  # steps, seconds, score


@dataclass(frozen=True)
class Band:
    """The curves of an arm's seeds: at each test the median of the seconds, and the scores."""

    seconds: List[float]
    scores: List[Spread]


def common_seeds(of_arms: Iterable[Iterable[int]]) -> List[int]:
    """Those that all arms have: medians and means of others could not be compared."""
    found = [set(seeds) for seeds in of_arms]
    return sorted(set.intersection(*found)) if found else []


def by_arm(lines: Sequence[Dict[str, Any]]) -> Dict[str, List[Dict[str, Any]]]:
    """Results' lines, one a seed that all of these arms have; empty where there is none."""
    found: Dict[str, List[Dict[str, Any]]] = defaultdict(list)
    for line in lines:
        found[line["arm"]].append(line)
    seeds = common_seeds([line["seed"] for line in own] for own in found.values())
    return {
        name: [line for line in own if line["seed"] in seeds]
        for name, own in found.items() if seeds
    }


def band(curves: Sequence[Curve]) -> Band:
    """Of curves that have as many tests each."""
    tests = list(zip(*curves))
    return Band(
        [median(seconds for _, seconds, _ in test) for test in tests],
        [Spread.of([score for _, _, score in test]) for test in tests],
    )


def seconds_to(curve: Curve, goal: float) -> float:
    """Until the first test whose score is no less than the goal; infinite where none is."""
    return next((seconds for _, seconds, score in curve if score >= goal), math.inf)


def step_seconds(curve: Curve) -> float:
    """Of a step; those before the first test do not count, unless there is no other."""
    (first, begun, _), (last, ended, _) = curve[0], curve[-1]
    return (ended - begun) / (last - first) if len(curve) > 1 else ended / last
