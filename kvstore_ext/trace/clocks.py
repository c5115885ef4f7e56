"""Brings the clocks of a job's processes together, by pings that workers exchange with servers.

Every host's clock counts from somewhere, and a little faster or slower than others. A worker sends
a ping at `begin`, the server answers with its own time, and the answer comes at `end`. The server's
time then was one of the worker's between the two: the middle, give or take half of the round trip
(Cristian, "Probabilistic clock synchronization", 1989). The shortest round trips tell most.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Sequence, Set, Tuple

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
        where no ping connects the process with the one whose clock is the job's.
    """

    name: str = ""
    offset: float = 0.0
    error: float = 0.0


@dataclass(frozen=True)
class _Way:
    """How one clock is brought to another: nanoseconds to add at a time, and how exact that is."""

    times: np.ndarray  # of the clock that is to be moved
    offsets: np.ndarray
    error: float  # nanoseconds

    def moved(self, times: np.ndarray) -> np.ndarray:
        return times + np.rint(np.interp(times, self.times, self.offsets)).astype(np.int64)


def bring_together(processes: Sequence[ProcessTrace]) -> List[ProcessTrace]:
    """The same with all times on one clock: of those that most can be brought to, the first one's,
    which mostly is worker 0's.

    Parameters
    ----------
    processes
        At least one, with `begin` and `end` of events in nanoseconds of each process's own clock.

    Returns
    -------
    list of ProcessTrace
        In the same order. The times of those that no way leads to stay as they are, with a
        `clock.error` that is infinite.
    """
    ways = _ways(processes)
    # How clocks become that one, way after way: the most exact that is known so far. The clock that
    # is known best is next to lead to others, as Dijkstra goes through a graph.
    paths: Dict[Name, List[_Way]] = {_name(_first_of_most(processes, ways)): []}
    # By the name of their clocks. A server that has no trace leads from worker to worker, too.
    left = {name: "" for way in ways for name in way}
    left.update({_name(process): process.clock.name for process in processes})
    while any(name in paths for name in left):
        here = min((name for name in left if name in paths), key=lambda name: _error(paths[name]))
        known = left.pop(here)
        for name, clock in left.items():
            way = ways.get((name, here))
            if clock and clock == known:
                way = _SAME
            if way is None:
                continue
            path = [way, *paths[here]]
            if name not in paths or _error(path) < _error(paths[name]):
                paths[name] = path
    return [_moved(process, paths.get(_name(process))) for process in processes]


def _first_of_most(
    processes: Sequence[ProcessTrace], ways: Mapping[Tuple[Name, Name], _Way]
) -> ProcessTrace:
    """The first process of those that most ways and clocks lead to: a worker 0 that was idle has
    sent no ping."""
    together: Dict[object, Set[object]] = {}  # processes and clocks
    clocks = [(_name(process), process.clock.name or _name(process)) for process in processes]
    for one, other in (*ways, *clocks):
        both = together.get(one, {one}) | together.get(other, {other})
        together.update(dict.fromkeys(both, both))
    names = {_name(process) for process in processes}
    return max(processes, key=lambda process: len(together[_name(process)] & names))


def _name(process: ProcessTrace) -> Name:
    return process.role, process.rank


def _error(path: Sequence[_Way]) -> float:
    return sum(way.error for way in path)


_SAME = _Way(np.zeros(1), np.zeros(1), 0.0)


def _moved(process: ProcessTrace, path: Optional[Sequence[_Way]]) -> ProcessTrace:
    """With times on the first clock; as they are, where no ways lead to that."""
    if path is None:
        unknown = replace(process.clock, offset=0.0, error=float("inf"))
        return replace(process, clock=unknown)
    events = process.events.copy()
    for name in ("begin", "end"):
        for way in path:
            events[name] = way.moved(events[name])
    offset = 0.0
    if len(events):
        middle = len(events) // 2
        offset = float(events["begin"][middle] - process.events["begin"][middle])
    clock = replace(process.clock, offset=offset, error=_error(path))
    return replace(process, events=events, clock=clock)


def _ways(processes: Sequence[ProcessTrace]) -> Dict[Tuple[Name, Name], _Way]:
    """From one clock to another, by the pings of each worker to each server; and back."""
    ways = {}
    for worker in processes:
        pings = worker.events[worker.events["kind"] == Kind.CLOCK]
        for server in np.unique(pings["peer"]):
            best = _shortest(pings[pings["peer"] == server])
            here, there = (worker.role, worker.rank), ("server", int(server))
            middle = (best["begin"] + best["end"]) // 2
            told = best["key"].astype(np.int64)
            error = float(np.max(best["end"] - best["begin"])) / 2
            ways[there, here] = _Way(told, (middle - told).astype(float), error)
            ways[here, there] = _Way(middle, (told - middle).astype(float), error)
    return ways


def _shortest(pings: np.ndarray) -> np.ndarray:
    """The ping with the shortest round trip of each window of time, in order."""
    window = (pings["begin"] - pings["begin"].min()) // _WINDOW
    order = np.lexsort((pings["end"] - pings["begin"], window))
    ordered = pings[order]
    first = np.unique(window[order], return_index=True)[1]
    return ordered[first]
