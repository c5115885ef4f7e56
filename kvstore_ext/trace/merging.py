"""Makes one file of a job's trace that Perfetto, Chrome and speedscope open: Trace Event Format.

    https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU

A process of the job is a process there. What one of its threads did at a time stands on that
thread's track; operations, which overlap, are asynchronous events; bytes in flight and in queues
are counters of each link. An arrow leads from a push to its sum, and on to its result.
"""
from __future__ import annotations

import json
import math
from typing import Any, Dict, Iterator, List, TextIO, Tuple

import numpy as np

from .events import LEAST_WEIGHT, WHOLE_KEY, Kind, Message
from .reading import JobTrace, ProcessTrace

Event = Dict[str, Any]

# Tracks that are no thread of the process: above the numbers that Linux gives to those.
_STEPS, _LAYERS = (1 << 22) + 1, (1 << 22) + 2
_FIRST = {_STEPS: 1, _LAYERS: 2}  # where they stand
_SERVERS_FROM = 10_000  # pids: workers' come first

# What a thread does from `begin` to `end`, in words.
_SPANS = {Kind.ENCODED: "encode", Kind.SUMMED: "sum", Kind.WRITTEN: "write"}
_MOMENTS = {
    Kind.QUEUED: "queued",
    Kind.ANSWERED: "answered",
    Kind.SENT: "sent",
    Kind.RECEIVED: "received",
}
# The arrow of a slice: where it begins, passes, and ends.
_ARROW = {
    ("worker", Kind.ENCODED): "s",
    ("server", Kind.SUMMED): "t",
    ("worker", Kind.WRITTEN): "f",
}
_GRADIENTS = (int(Message.INIT), int(Message.PUSH))


def write_merged(job: JobTrace, file: TextIO) -> int:
    """Writes the file, as JSON; returns how many events it has.

    Raises
    ------
    OSError
        Where the file cannot be written.
    """
    about = json.dumps({process.name: _about(process) for process in job.processes})
    file.write(f'{{"displayTimeUnit": "ms", "otherData": {about}, "traceEvents": [')
    count = 0
    for count, event in enumerate(merged(job), 1):
        file.write(",\n" if count > 1 else "\n")
        file.write(json.dumps(event))
    file.write("\n]}\n")
    return count


def _about(process: ProcessTrace) -> Dict[str, Any]:
    error = process.clock.error / 1000
    return {
        "host": process.host,
        "clock error in us": error if error < float("inf") else "unknown",
        "events left out": process.dropped,
    }


def merged(job: JobTrace) -> Iterator[Event]:
    """The file's events. Times are microseconds since the first of all processes whose clock is
    known; of one whose clock is not, since its own first event."""
    known = [_first(each) for each in job.processes if len(each.events) and _is_on_clock(each)]
    start = min(known, default=0)
    whole = _arrows_that_are_whole(job)
    for process in job.processes:
        # Another host's clock may count from days before or after: a viewer would show the file as
        # two dots, far apart.
        own_start = start if _is_on_clock(process) else _first(process)
        yield from _Process(job, process, own_start, whole).events()


def _first(process: ProcessTrace) -> int:
    """When its first event begins; 0 where it has none."""
    return int(process.events["begin"].min()) if len(process.events) else 0


def _is_on_clock(process: ProcessTrace) -> bool:
    """Whether its times are on the job's one clock."""
    return math.isfinite(process.clock.error)


def _slice_of(worker: int, event: np.void) -> Tuple[int, int, int, int]:
    return worker, int(event["key"]), int(event["slice"]), int(event["round"])


def _arrows_that_are_whole(job: JobTrace) -> Dict[Tuple[int, int, int, int], int]:
    """Numbers of arrows that have a beginning and an end, by worker, key, slice and round."""
    ends = []
    for kind in (Kind.ENCODED, Kind.WRITTEN):
        found = set()
        for process in job.workers:
            for event in process.of_kind(kind):
                if event["slice"] != WHOLE_KEY:
                    found.add(_slice_of(process.rank, event))
        ends.append(found)
    return {name: number for number, name in enumerate(sorted(ends[0] & ends[1]), 1)}


class _Process:
    """The events of one process."""

    def __init__(
        self,
        job: JobTrace,
        process: ProcessTrace,
        start: int,
        arrows: Dict[Tuple[int, int, int, int], int],
    ) -> None:
        self._job = job
        self._process = process
        self._start = start
        self._arrows = arrows
        self._drawn: set = set()  # arrows' ends here, each of which there is once
        self._pid = (_SERVERS_FROM if process.role == "server" else 1) + process.rank

    def events(self) -> Iterator[Event]:
        yield from self._names()
        for number, event in enumerate(self._process.events):
            yield from self._of(number, event)
        yield from self._counters()

    def _names(self) -> Iterator[Event]:
        process = self._process
        host = f" on {process.host}" if process.host else ""
        yield self._metadata("process_name", 0, name=process.name + host)
        yield self._metadata("process_sort_index", 0, sort_index=self._pid)
        numbers = np.unique(process.events["thread"])
        threads = {int(number): f"thread {number}" for number in numbers if number}
        for track, name in {**threads, _STEPS: "steps", _LAYERS: "layers"}.items():
            if track not in threads and not len(process.of_kind(*_TRACKS[track])):
                continue
            yield self._metadata("thread_name", track, name=name)
            yield self._metadata("thread_sort_index", track, sort_index=_FIRST.get(track, track))

    def _metadata(self, what: str, thread: int, **told: Any) -> Event:
        return {"ph": "M", "name": what, "pid": self._pid, "tid": thread, "ts": 0, "args": told}

    def _of(self, number: int, event: np.void) -> Iterator[Event]:
        kind = Kind(event["kind"])
        if kind in _SPANS:
            yield self._span(f"{_SPANS[kind]} {self._key(event)}", event, int(event["thread"]))
            yield from self._arrow(kind, event)
        elif kind in _MOMENTS:
            yield {
                **self._basis(f"{_MOMENTS[kind]} {self._key(event)}", "i", event["begin"]),
                "tid": int(event["thread"]),
                "s": "t",
                "args": self._told(event),
            }
        elif kind == Kind.STEP:
            yield self._span(f"step {event['round']}", event, _STEPS)
        elif kind in (Kind.FORWARD, Kind.BACKWARD):
            yield self._span(f"{self._layer(event)} {kind.name.lower()}", event, _LAYERS)
        elif kind in _OPERATIONS:
            yield from self._operation(f"{_OPERATIONS[kind]} {self._key(event)}", number, event)

    def _layer(self, event: np.void) -> str:
        layers, number = self._process.layers, int(event["key"])
        return layers[number] if number < len(layers) else "a layer"

    def _basis(self, name: str, phase: str, time: int) -> Event:
        microseconds = (int(time) - self._start) / 1000
        category = self._process.role
        return {"name": name, "cat": category, "ph": phase, "ts": microseconds, "pid": self._pid}

    def _span(self, name: str, event: np.void, track: int) -> Event:
        return {
            **self._basis(name, "X", event["begin"]),
            "tid": track,
            "dur": int(event["end"] - event["begin"]) / 1000,
            "args": self._told(event),
        }

    def _operation(self, name: str, number: int, event: np.void) -> Iterator[Event]:
        """An asynchronous event: others of its track may begin and end meanwhile."""
        identity = f"{self._pid}.{number}"
        for phase, time in (("b", event["begin"]), ("e", event["end"])):
            told = {"args": self._told(event)} if phase == "b" else {}
            yield {
                **self._basis(name, phase, time),
                "tid": int(event["thread"]),
                "id": identity,
                **told,
            }

    def _arrow(self, kind: Kind, event: np.void) -> Iterator[Event]:
        process = self._process
        phase = _ARROW.get((process.role, kind))
        worker = process.rank if process.role == "worker" else int(event["peer"])
        name = _slice_of(worker, event)
        if phase is None or name not in self._arrows or (phase, name) in self._drawn:
            return
        self._drawn.add((phase, name))
        yield {
            **self._basis("slice", phase, event["begin"]),
            "cat": "slice",
            "tid": int(event["thread"]),
            "id": self._arrows[name],
            **({"bp": "e"} if phase == "f" else {}),
        }

    def _key(self, event: np.void) -> str:
        if event["message"] in (Message.ASK, Message.ANSWER):
            return "question"
        name = self._job.name_of(int(event["key"]))
        return name if event["slice"] == WHOLE_KEY else f"{name} [{event['slice']}]"

    def _told(self, event: np.void) -> Dict[str, Any]:
        told = {"round": int(event["round"]), "priority": int(event["priority"])}
        if event["bytes"]:
            told["bytes"] = int(event["bytes"])
        if event["peer"] >= 0:
            other = "server" if self._process.role == "worker" else "worker"
            told[other] = int(event["peer"])
        return told

    def _counters(self) -> Iterator[Event]:
        """Bytes in flight to each peer, and in the queue before them."""
        other = "server" if self._process.role == "worker" else "worker"
        sent = self._process.of_kind(Kind.SENT, Kind.ACKNOWLEDGED)
        queued = self._process.of_kind(Kind.QUEUED, Kind.ANSWERED, Kind.SENT)
        travels = np.isin(queued["message"], [Message.INIT, Message.PUSH, Message.RESULT])
        for peer in np.unique(sent["peer"]):
            flying = sent[sent["peer"] == peer]
            weights = np.maximum(flying["bytes"].astype(np.int64), LEAST_WEIGHT)
            left = flying["kind"] == Kind.SENT
            changes = np.where(left, weights, -flying["bytes"].astype(np.int64))
            yield from self._counter(f"in flight to {other} {peer}", flying["begin"], changes)
            waiting = queued[(queued["peer"] == peer) & travels]
            leaving = waiting["kind"] == Kind.SENT
            changes = np.where(leaving, -1, 1) * waiting["bytes"].astype(np.int64)
            yield from self._counter(f"queue to {other} {peer}", waiting["begin"], changes)

    def _counter(self, name: str, times: np.ndarray, changes: np.ndarray) -> Iterator[Event]:
        # What was under way before the recording began is acknowledged in it.
        total = 0
        for time, change in zip(times, changes):
            total = max(0, total + int(change))
            yield {**self._basis(name, "C", time), "tid": 0, "args": {"bytes": total}}


_TRACKS: Dict[int, List[Kind]] = {_STEPS: [Kind.STEP], _LAYERS: [Kind.FORWARD, Kind.BACKWARD]}
_OPERATIONS = {
    Kind.READY: "compute",
    Kind.PREPARED: "look at",
    Kind.DONE: "exchange",
    Kind.UPDATED: "update",
}
