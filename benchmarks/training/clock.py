"""Seconds of training, and scores by them."""
from __future__ import annotations

import time
from typing import Any, Dict, List


class Clock:
    """Runs while a worker trains, and stands while it tests. It stands in the beginning."""

    def __init__(self) -> None:
        self._passed = 0.0
        self._since = 0.0

    def go(self) -> None:
        self._since = time.perf_counter()

    def stop(self) -> float:
        """Returns how long it has run so far."""
        self._passed += time.perf_counter() - self._since
        return self._passed


class Curve:
    """What a worker has found by its clock."""

    def __init__(self) -> None:
        self.points: Dict[str, List[Any]] = {"steps": [], "seconds": [], "found": []}

    def add(self, steps: int, seconds: float, found: Any) -> None:
        """What a test of this worker's share of the examples has found; it becomes JSON."""
        for name, value in zip(self.points, (steps, round(seconds, 4), found)):
            self.points[name].append(value)
