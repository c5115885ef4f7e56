"""Brings the clocks of a job's processes together, from the pings that workers exchange with servers.

Every host's clock counts from somewhere, and a little faster or slower than others. A worker sends a
ping at `begin`, the server answers with its own time, and the answer comes at `end`. The server's
time then was one of the worker's between the two: the middle, give or take half of the round trip
(Cristian, "Probabilistic clock synchronization", 1989). The shortest round trips tell most.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Dict, List, Sequence, Tuple

import numpy as np

from .events import Kind

if TYPE_CHECKING:
    from .reading import ProcessTrace

_WINDOW = 2_000_000_000  # nanoseconds in which the shortest round trip is looked for

Name = Tuple[str, int]  # role and rank


@dataclass(frozen=True)
class Clock:
    """A process's clock, and how it was brought to the job's.

    Attributes
    ----------
    name
        Which clock that is: processes with the same one need not be brought together. "" where that
        is not known.
    offset
        Nanoseconds that were added to its times, in the middle of the trace.
    error
        Nanoseconds by which they may be wrong: half of the round trips that they rest on; infinite
        where no ping connects the process with worker 0.
    """

    name: str = ""
    offset: float = 0.0
    error: float = 0.0


@dataclass(frozen=True)
class _Way:
    """How one clock is brought to another: nanoseconds to add at a time, and how exact that is."""

    times: np.ndarray  # of the clock that is to be moved
    offsets: np.ndarray
    error: float

    def moved(self, times: np.ndarray) -> np.ndarray:
        return times + np.rint(np.interp(times, self.times, self.offsets)).astype(np.int64)


def bring_together(processes: Sequence[ProcessTrace]) -> List[ProcessTrace]:
    """The same with all times on the clock of the first, which is worker 0 where that has a trace."""
    ways = _ways(processes)
    left = list(processes)
    done: Dict[Name, ProcessTrace] = {}
    first = left.pop(0)
    done[first.role, first.rank] = replace(first, clock=replace(first.clock, offset=0.0, error=0.0))
    # From those whose clock is known to those that they know best, as Dijkstra goes through a graph.
    # ways: (known, unknown) -> how unknown's times become known's own; known's are moved already, so
    # each way is followed to the first clock, one after the other.
    path: Dict[Name, List[_Way]] = {(first.role, first.rank): []}
    while left:
        best = _nearest(left, done, ways)
        if best is None:
            break
        known, process, way = best
        left.remove(process)
        steps = [way, *path[known]]
        path[process.role, process.rank] = steps
        done[process.role, process.rank] = _moved(process, steps)
    for process in left:
        unknown = replace(process.clock, offset=0.0, error=float("inf"))
        done[process.role, process.rank] = replace(process, clock=unknown)
    return [done[process.role, process.rank] for process in processes]


def _nearest(left, done, ways):  # type: ignore[no-untyped-def]
    best, least = None, float("inf")
    for process in left:
        for known, other in done.items():
            same = process.clock.name and process.clock.name == other.clock.name
            way = _same_clock() if same else ways.get((known, (process.role, process.rank)))
            if way is None:
                continue
            error = other.clock.error + way.error
            if error < least:
                best, least = (known, process, way), error
    return best


def _same_clock() -> _Way:
    return _Way(np.zeros(1), np.zeros(1), 0.0)


def _moved(process: ProcessTrace, steps: Sequence[_Way]) -> ProcessTrace:
    events = process.events.copy()
    for name in ("begin", "end"):
        for way in steps:
            events[name] = way.moved(events[name])
    middle = len(events) // 2
    offset = float(events["begin"][middle] - process.events["begin"][middle]) if len(events) else 0.0
    error = sum(way.error for way in steps)
    return replace(process, events=events, clock=replace(process.clock, offset=offset, error=error))


def _ways(processes: Sequence[ProcessTrace]) -> Dict[Tuple[Name, Name], _Way]:
    """From the pings of each worker to each server, both ways."""
    ways = {}
    for worker in processes:
        pings = worker.events[worker.events["kind"] == Kind.CLOCK]
        for server in np.unique(pings["peer"]):
            best = _shortest(pings[pings["peer"] == server])
            here, there = (worker.role, worker.rank), ("server", int(server))
            middle = (best["begin"] + best["end"]) // 2
            told = best["key"].astype(np.int64)
            error = float(np.max(best["end"] - best["begin"])) / 2
            ways[here, there] = _Way(told, (middle - told).astype(float), error)
            ways[there, here] = _Way(middle, (told - middle).astype(float), error)
    return ways


def _shortest(pings: np.ndarray) -> np.ndarray:
    """The ping with the shortest round trip of each window of time, in order."""
    window = (pings["begin"] - pings["begin"].min()) // _WINDOW
    order = np.lexsort((pings["end"] - pings["begin"], window))
    ordered = pings[order]
    first = np.unique(window[order], return_index=True)[1]
    return ordered[first]
