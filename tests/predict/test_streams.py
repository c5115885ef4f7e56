"""How MXNet's own stores send: in which order, how much at a time, and when they stand still."""
from __future__ import annotations

from math import log
from statistics import mean, stdev

import pytest
from kvstore_ext.predict.events import Events
from kvstore_ext.predict.heaps import PsLiteHeap
from kvstore_ext.predict.network import FRAMES
from kvstore_ext.predict.shares import HELD, Share
from kvstore_ext.predict.stock_p3 import SharedQueue
from kvstore_ext.predict.streams import Stream
from kvstore_ext.predict.wires import Connection, Sender, Wire

from benchmarks.prediction.burst_host import LOOKS
from benchmarks.prediction.bursts import simulate

RATE, DELAY = 1e8, 0.001
PART, BUFFER = 32768, 4 << 20
ALIKE = Share(0.0, 0)


def wire(size: float) -> float:
    return size * FRAMES / RATE


class Hosts:
    """One that sends, and others that receive, each over links of its own."""

    def __init__(self, others: int, delay: float = DELAY) -> None:
        self.events, self.came = Events(), {}
        sender, back = Sender(self.events, Wire(RATE)), Wire(RATE)
        self.connections = [
            Connection(sender, Wire(RATE), Sender(self.events, Wire(RATE)), back, delay)
            for _ in range(others)
        ]

    def note(self, message: object) -> None:
        self.came[message] = self.events.now


def test_two_parts_are_under_way_until_the_first_is_acknowledged():
    hosts = Hosts(1)
    Stream(hosts.connections[0]).send(4 * PART, 0, hosts.note, "all")
    hosts.events.run()
    # The third part leaves when the first has come, and its acknowledgement has come back.
    assert hosts.came["all"] == pytest.approx(3 * wire(PART) + 3 * DELAY + wire(200))


def test_a_short_way_keeps_the_wire_full():
    hosts = Hosts(1, delay=0)
    stream = Stream(hosts.connections[0])
    for number in range(3):
        stream.send(10 * PART, 0, hosts.note, number)
    hosts.events.run()
    assert hosts.came == pytest.approx({own: 10 * (own + 1) * wire(PART) for own in range(3)})
    assert stream.held == 0


def test_a_share_is_held_for_a_while():
    share = Share(0.5, 1, 2)
    found = [share.at(HELD * number / 10) for number in range(1000)]
    changes = [now for now, (old, new) in enumerate(zip(found, found[1:])) if old != new]
    assert {after - before for before, after in zip(changes, changes[1:])} == {10}
    logarithms = [log(each) for each in found[::10]]
    assert mean(logarithms) == pytest.approx(0, abs=0.15)
    assert stdev(logarithms) == pytest.approx(0.5, abs=0.12)
    assert ALIKE.at(0) == ALIKE.at(5 * HELD) == 1


def test_connections_that_are_unlike_leave_links_idle():
    alike, unlike = (
        mean(mean(simulate(3_000_000, 100, deviation, draw)[LOOKS.index(1.0)]) for draw in range(6))
        for deviation in (0.0, 0.35)
    )
    assert 0.95 < alike < 1
    assert unlike < alike - 0.05


def test_the_newest_of_equals_comes_first_and_then_the_one_at_the_arrays_end():
    heap = PsLiteHeap()
    for message in "abcd":
        heap.push(0, message)  # the array is d, c, b, a
    heap.push(-1, "urgent")
    heap.push(1, "late")
    assert [heap.pop() for _ in range(len(heap))] == [
        "urgent", "d", "c", "a", "b", "late"
    ]  # fmt: skip


def test_stock_p3_stands_still_before_a_connection_that_is_full():
    hosts = Hosts(2, delay=0)
    queue = SharedQueue(hosts.events)
    full, other = (queue.to(connection, ALIKE) for connection in hosts.connections)
    for number in range(12):
        full.send(BUFFER, number, hosts.note, number)
    other.send(PART, 12, hosts.note, "other")
    hosts.events.run()
    # TCP takes two messages as soon as the first has begun to leave, and the next one with each
    # that has left. ZeroMQ tells of the first five when it has taken the fifth, as the fourth
    # begins to leave; ten stand in the pipe until then, and the eleventh before it.
    # One part more makes room, and two others are under way before the other's.
    assert hosts.came["other"] == pytest.approx(3 * wire(BUFFER) + 4 * wire(PART))
    assert hosts.came[2] < hosts.came["other"] < hosts.came[3]


def test_stock_p3_sends_what_is_urgent_first_to_whomever():
    hosts = Hosts(2, delay=0)
    queue = SharedQueue(hosts.events)
    pipes = [queue.to(connection, ALIKE) for connection in hosts.connections]
    for number in range(8):
        pipes[0].send(BUFFER, number, hosts.note, number)
    pipes[1].send(PART, -1, hosts.note, "urgent")
    hosts.events.run()
    assert hosts.came["urgent"] < hosts.came[0]
