"""What the Trace Event Format asks of a file.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""
from __future__ import annotations

from collections import defaultdict
from typing import Any, Iterator

Event = dict[str, Any]

# By phase: the fields that an event must have beside those that all have.
_FIELDS = {
    "X": {"dur", "tid"},
    "i": {"tid", "s"},
    "C": {"args"},
    "M": {"args"},
    "b": {"id", "cat"},
    "e": {"id", "cat"},
    "s": {"id", "cat", "tid"},
    "t": {"id", "cat", "tid"},
    "f": {"id", "cat", "tid"},
}
_METADATA = {
    "process_name": "name",
    "thread_name": "name",
    "process_sort_index": "sort_index",
    "thread_sort_index": "sort_index",
}


def violations(content: Any) -> Iterator[str]:
    """What is wrong with a file's JSON, a line each."""
    if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
        yield "the file is no object with a list traceEvents"
        return
    if content.get("displayTimeUnit") not in ("ms", "ns"):
        yield f"displayTimeUnit is {content.get('displayTimeUnit')!r}"
    events = content["traceEvents"]
    for event in events:
        yield from _of_one(event)
    yield from _of_nesting(events)
    yield from _of_flows(events)
    yield from _of_asynchronous(events)


def _of_one(event: Event) -> Iterator[str]:
    phase = event.get("ph")
    if phase not in _FIELDS:
        yield f"phase {phase!r} of {event}"
        return
    missing = ({"name", "ph", "ts", "pid"} | _FIELDS[phase]) - set(event)
    if missing:
        yield f"{event} has no {missing}"
    numbers = [event.get("ts", 0), event.get("dur", 0)]
    if not all(isinstance(number, (int, float)) and number >= 0 for number in numbers):
        yield f"times of {event}"
    if not all(isinstance(event.get(name, 0), int) for name in ("pid", "tid")):
        yield f"process or thread of {event}"
    if phase == "C" and not all(isinstance(each, (int, float)) for each in event["args"].values()):
        yield f"a counter counts no numbers: {event}"
    if phase == "M" and _METADATA.get(event["name"], "?") not in event["args"]:
        yield f"metadata {event}"
    if phase == "i" and event["s"] not in ("g", "p", "t"):
        yield f"scope of {event}"


def _of_nesting(events: list[Event]) -> Iterator[str]:
    """Spans of a thread lie within each other, or one after the other."""
    threads = defaultdict(list)
    for event in events:
        if event.get("ph") == "X":
            threads[event["pid"], event["tid"]].append((_start(event), -_end(event), event))
    for spans in threads.values():
        open_until: list[int] = []
        for begin, minus_end, event in sorted(spans, key=lambda span: span[:2]):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            if open_until and -minus_end > open_until[-1]:
                yield f"{event} begins within a span of its thread, and ends after it"
            open_until.append(-minus_end)


def _of_flows(events: list[Event]) -> Iterator[str]:
    """Each arrow has one beginning and one end, in this order, and each of its points a span."""
    flows = defaultdict(list)
    spans = defaultdict(set)
    for event in events:
        if event.get("ph") in ("s", "t", "f"):
            flows[event["cat"], event["id"]].append(event)
        elif event.get("ph") == "X":
            spans[event["pid"], event["tid"]].add(event["ts"])
    for name, points in flows.items():
        phases = [point["ph"] for point in points]
        if phases.count("s") != 1 or phases.count("f") != 1:
            yield f"arrow {name} has the points {phases}"
        for point in points:
            if point["ts"] not in spans[point["pid"], point["tid"]]:
                yield f"{point} lies in no span"


def _of_asynchronous(events: list[Event]) -> Iterator[str]:
    """Each operation begins and ends once."""
    operations = defaultdict(list)
    for event in events:
        if event.get("ph") in ("b", "e"):
            operations[event["cat"], event["id"], event["name"]].append(event)
    for name, points in operations.items():
        if [point["ph"] for point in points] != ["b", "e"] or points[0]["ts"] > points[1]["ts"]:
            yield f"operation {name} is {points}"


def _start(event: Event) -> int:
    return round(event["ts"] * 1000)


def _end(event: Event) -> int:
    return round(event["ts"] * 1000) + round(event["dur"] * 1000)
