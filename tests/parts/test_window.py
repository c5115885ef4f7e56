"""How much a peer may be sent before it acknowledges (csrc/window.h), on simulated links."""
from __future__ import annotations

from collections import deque

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kvstore_ext import _core

SLICE = 200_000
PART = 50_000
# What a backward pass sends: layers of a few slices, and small ones such as biases.
LAYERS = [SLICE, SLICE, 2_000, SLICE, 500, SLICE, SLICE, SLICE, SLICE, 4_000] * 10
LARGE_LAYERS = [SLICE] * 100

NEAR = (50e6, 2e-4)  # bytes a second, seconds there and back
FAST = (1.25e9, 5e-4)
LONG = (125e6, 2e-2)


class Link:
    """A link in simulated time, and an estimator that sees what a sender on it would see."""

    def __init__(self, bandwidth: float, round_trip: float) -> None:
        self.changes: list[_core.Window] = []
        self.estimator = _core.WindowEstimator(SLICE, 1, self.changes.append)
        self.bandwidth = bandwidth
        self.round_trip = round_trip
        self.now = 0.0
        self._free = 0.0  # when the last byte has left
        self._flights: deque[tuple[float, int]] = deque()  # (acknowledged at, bytes)

    def send(self, sizes: list[int]) -> None:
        """Sends slices as the window admits their parts; returns when all are acknowledged."""
        for size in sizes:
            most = self.estimator.advice().part_bytes
            for begin in range(0, size, most):
                self._send_part(min(most, size - begin))
        while self._flights:
            self._take_acknowledgement()

    def train(self, layers: list[int], iterations: int = 20) -> None:
        """Sends the layers' gradients again and again; between them it computes and pings."""
        for _ in range(iterations):
            self.estimator.round_trip(0, self.round_trip)
            self.send(layers)
            self.now += 0.1

    def busy(self) -> float:
        """Which part of the bandwidth a long burst gets."""
        begun = self.now
        self.send([SLICE] * 200)
        return 200 * SLICE / self.bandwidth / (self.now - begun - self.round_trip)

    def bytes_on_the_way(self) -> float:
        """What the link holds during a round trip, and while a busy machine's thread wakes up."""
        return self.bandwidth * (self.round_trip + 0.0002)

    def bytes_advised(self) -> int:
        return self.estimator.advice().bytes

    def _send_part(self, size: int) -> None:
        while self._flights and self._in_flight() + size > self.bytes_advised():
            self._take_acknowledgement()
        self._free = max(self._free, self.now) + size / self.bandwidth
        self._flights.append((self._free + self.round_trip, size))

    def _in_flight(self) -> int:
        return sum(size for _, size in self._flights)

    def _take_acknowledgement(self) -> None:
        self.now, size = self._flights.popleft()
        self.estimator.acknowledged(0, size, self.now)


def test_before_anything_is_known_it_admits_one_part() -> None:
    advice = Link(*FAST).estimator.advice()
    assert (advice.part_bytes, advice.bytes) == (PART, PART)


def test_slices_smaller_than_a_part_stay_whole() -> None:
    for slice_bytes in (8, PART, 2 * PART - 1):
        advice = _core.WindowEstimator(slice_bytes, 1, lambda _: None).advice()
        assert (advice.part_bytes, advice.bytes) == (slice_bytes, slice_bytes)


@pytest.mark.parametrize("layers", [LAYERS, LARGE_LAYERS], ids=["small too", "large only"])
def test_a_slow_near_link_gets_one_part(layers: list[int]) -> None:
    link = Link(*NEAR)
    link.train(layers)
    assert link.bytes_advised() == PART
    assert link.busy() > 0.8


@pytest.mark.parametrize("layers", [LAYERS, LARGE_LAYERS], ids=["small too", "large only"])
@pytest.mark.parametrize("which", [FAST, LONG], ids=["fast", "long"])
def test_a_fast_or_long_link_is_kept_busy_with_about_what_it_holds(
    which: tuple[float, float], layers: list[int]
) -> None:
    link = Link(*which)
    link.train(layers)
    assert link.busy() > 0.85
    assert link.bytes_advised() <= 2 * link.bytes_on_the_way() + 2 * SLICE


@given(st.floats(1e7, 2e9), st.floats(1e-5, 5e-2))
def test_any_link_of_moderate_length_is_kept_busy_within_bounds(
    bandwidth: float, round_trip: float
) -> None:
    assume(bandwidth * round_trip < 40 * SLICE)
    link = Link(bandwidth, round_trip)
    link.train(LAYERS)
    # With one link alone; the gaps that a second part would fill are filled by the other links'.
    assert link.busy() > 0.5
    assert link.bytes_advised() <= 2 * link.bytes_on_the_way() + 2 * SLICE


def test_the_window_is_bounded_on_the_longest_links() -> None:
    link = Link(1.25e10, 1.0)
    link.train(LAYERS)
    assert link.bytes_advised() <= 65 * SLICE


@pytest.mark.parametrize(("before", "after"), [(FAST, NEAR), (LONG, NEAR), (NEAR, LONG)])
def test_it_adapts_when_the_link_changes(
    before: tuple[float, float], after: tuple[float, float]
) -> None:
    link = Link(*before)
    link.train(LAYERS)
    link.bandwidth, link.round_trip = after
    link.train(LAYERS, iterations=2000)
    assert link.busy() > 0.75
    assert link.bytes_advised() <= 2 * link.bytes_on_the_way() + 2 * SLICE


@pytest.mark.parametrize("which", [NEAR, FAST, LONG], ids=["near", "fast", "long"])
def test_it_settles(which: tuple[float, float]) -> None:
    link = Link(*which)
    link.train(LAYERS)
    del link.changes[:]
    link.train(LAYERS)
    assert len(link.changes) <= 3


def test_changes_are_told() -> None:
    link = Link(*LONG)
    link.train(LAYERS)
    assert link.changes[-1].bytes == link.bytes_advised()
    sizes = [(change.part_bytes, change.bytes) for change in link.changes]
    assert all(before != after for before, after in zip(sizes, sizes[1:]))


def test_a_peer_on_the_same_machine_does_not_count() -> None:
    advised = []
    for local_seconds, local_bytes in [(2e-4, PART), (1e-6, 10 * PART)]:
        estimator = _core.WindowEstimator(SLICE, 4, lambda _: None)
        for peer in range(4):
            estimator.round_trip(peer, local_seconds if peer == 3 else 2e-4)
        for step in range(1, 1000):
            for peer in range(4):
                estimator.acknowledged(peer, local_bytes if peer == 3 else PART, step * 1e-3)
        advised.append((estimator.advice().part_bytes, estimator.advice().bytes))
    assert advised[0] == advised[1]
