"""One job on so many hosts, and what was measured of it."""
from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median
from typing import Any, Dict, List

from benchmarks.cluster import Link
from benchmarks.replay import processes
from benchmarks.replay.arms import ARMS
from benchmarks.replay.processes import Interpreters

_VERSION = 2  # goes up with what changes the results of all arms
_MEGABITS = 1000.0  # of each host's link: nothing waits for it
_ROLES = ("worker", "server", "scheduler")
_FIGURES = ("descriptors", "threads", "private", "a_step", "idle")


@dataclass(frozen=True)
class GrowthRun:
    """A job of an arm on so many hosts, for the repeat-th time."""

    arm: str
    hosts: int
    repeat: int

    @property
    def key(self) -> str:
        """What makes it the same run as another."""
        version = ARMS[self.arm].version
        return json.dumps(["growth", self.arm, self.hosts, self.repeat, version, _VERSION])

    @property
    def expected(self) -> float:
        """Seconds that it takes here, about."""
        return 4 + 0.4 * self.hosts

    @property
    def limit(self) -> float:
        """Seconds after which it is given up."""
        return 120 + 10 * self.expected

    @property
    def fields(self) -> Dict[str, Any]:
        """What the line of its result begins with."""
        return {"arm": self.arm, "hosts": self.hosts, "repeat": self.repeat}

    def missing(self) -> str:
        """Why it cannot run here; empty where it can."""
        return ARMS[self.arm].missing()

    def measure(self, interpreters: Interpreters, limit: float) -> Dict[str, Any]:
        """Runs; returns what it measured. Raises JobError.

        `startup` is from the first worker's beginning, before which the scheduler and all servers
        have been started, until the last one's store is open, `first` until all workers have the
        first values, `seconds` a step, `barrier` one: all in seconds of this machine, whose
        processors all hosts share. By role, medians over the hosts of what `worker.py` has:
        `a_step` and `idle` are seconds of a processor, a step and a second.
        """
        found = processes.run(
            ARMS[self.arm], self.hosts, Link(send=_MEGABITS, receive=_MEGABITS),
            "benchmarks.growth.worker:work", {}, interpreters, limit,
        )
        opened = max(worker["opened"] for worker in found)
        return {
            "startup": opened - min(worker["begun"] for worker in found),
            "first": max(worker["opened"] + worker["initial"] for worker in found) - opened,
            "seconds": median(worker["step"] for worker in found),
            **{name: median(worker[name] for worker in found)
               for name in ("barrier", "connections", "packets", "idle_packets")},
            **{role: _middle([worker[role] for worker in found if role in worker])
               for role in _ROLES},
        }

    def __str__(self) -> str:
        return f"{self.arm} on {self.hosts} hosts"


def _middle(figures: List[Dict[str, Any]]) -> Dict[str, float]:
    return {name: median(each[name] for each in figures) for name in _FIGURES}
