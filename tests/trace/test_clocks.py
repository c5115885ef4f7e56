"""Clocks of hosts that have never met are brought together by pings, within the error stated."""
from __future__ import annotations

import math
import random

import pytest
from kvstore_ext.trace.clocks import bring_together
from kvstore_ext.trace.events import Kind
from kvstore_ext.trace.reading import ProcessTrace

from tests.trace.made_up import ping, process

SECOND = 10**9
AHEAD = 7 * SECOND
MARKS = range(0, 60 * SECOND, SECOND // 2)  # of which each process records when they were


def drifting(time: int, parts_per_million: float) -> int:
    return round(time * (1 + parts_per_million * 1e-6)) + AHEAD


def pings(draw: random.Random, parts_per_million: float, own: float = 0) -> list[dict]:
    """Answered after 100 us, and mostly much later, on whichever way."""
    found = []
    for begin in range(0, 60 * SECOND, SECOND // 10):
        there, back = (50_000 + round(draw.expovariate(1e-6)) for _ in range(2))
        here = [round(time * (1 + own * 1e-6)) for time in (begin, begin + there + back)]
        found.append(ping(*here, 0, drifting(begin + there, parts_per_million)))
    return found


def marks(parts_per_million: float) -> list[dict]:
    found = []
    for number, time in enumerate(MARKS):
        begin, end = (drifting(each, parts_per_million) for each in (time, time + 1000))
        found.append({"kind": Kind.SUMMED, "begin": begin, "end": end, "round": number})
    return found


def moved(found: list[ProcessTrace], role: str, rank: int) -> ProcessTrace:
    (one,) = (each for each in found if (each.role, each.rank) == (role, rank))
    return one


@pytest.mark.parametrize("parts_per_million", [0, 40, -40])
def test_times_of_a_server_become_the_workers(parts_per_million: float) -> None:
    draw = random.Random(1)
    worker = process("worker", 0, *pings(draw, parts_per_million))
    server = process("server", 0, *marks(parts_per_million))
    found = moved(bring_together([worker, server]), "server", 0)
    assert 0 < found.clock.error < 10**6
    for event in found.events:
        assert abs(event["begin"] - MARKS[event["round"]]) <= found.clock.error
        assert event["end"] - event["begin"] in (999, 1000, 1001)


def test_a_worker_is_brought_to_the_first_one_by_way_of_a_server() -> None:
    draw = random.Random(2)
    first = process("worker", 0, *pings(draw, 30))
    server = process("server", 0, *marks(30))
    later = [
        {**each, "begin": each["begin"] + 3 * SECOND, "end": each["end"] + 3 * SECOND}
        for each in pings(draw, 30)
    ]
    second = process("worker", 1, *later)
    found = bring_together([first, second, server])
    one = moved(found, "worker", 1)
    assert one.clock.error > moved(found, "server", 0).clock.error
    assert abs(one.clock.offset + 3 * SECOND) <= one.clock.error
    assert [each.rank for each in found] == [0, 1, 0], "in the order given"


def test_a_server_without_a_trace_leads_from_worker_to_worker() -> None:
    draw = random.Random(3)
    first, second = (process("worker", rank, *pings(draw, 30)) for rank in (0, 1))
    found = moved(bring_together([first, second]), "worker", 1)
    assert 0 < found.clock.error < 10**6
    assert abs(found.clock.offset) <= found.clock.error


def test_processes_with_one_clock_need_no_pings() -> None:
    worker = process("worker", 0, {"kind": Kind.DONE, "begin": 5, "end": 6}, clock="this")
    server = process("server", 0, {"kind": Kind.SUMMED, "begin": 7, "end": 9}, clock="this")
    found = moved(bring_together([worker, server]), "server", 0)
    assert (found.clock.offset, found.clock.error) == (0, 0)
    assert found.events["begin"].tolist() == [7]


def test_a_worker_0_that_was_idle_leaves_the_others_together() -> None:
    draw = random.Random(4)
    idle = process("worker", 0, clock="this")
    workers = [process("worker", rank, *pings(draw, 30), clock=f"{rank}") for rank in (1, 2)]
    found = bring_together([idle, *workers, process("server", 0, *marks(30), clock="s")])
    assert math.isinf(moved(found, "worker", 0).clock.error)
    assert (moved(found, "worker", 1).clock.offset, moved(found, "worker", 1).clock.error) == (0, 0)
    other = moved(found, "worker", 2)
    assert abs(other.clock.offset) <= other.clock.error < math.inf
    assert 0 < moved(found, "server", 0).clock.error < 10**6


def test_a_clock_that_nothing_leads_to_is_not_known() -> None:
    worker = process("worker", 0, {"kind": Kind.DONE, "begin": 5, "end": 6}, clock="this")
    server = process("server", 0, {"kind": Kind.SUMMED, "begin": 7, "end": 9}, clock="other")
    found = moved(bring_together([worker, server]), "server", 0)
    assert math.isinf(found.clock.error)
    assert found.events["begin"].tolist() == [7]
