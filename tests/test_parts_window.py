"""How much a peer may be sent before it acknowledges (csrc/window.h), on simulated links."""
from __future__ import annotations

from collections import deque

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kvstore_ext import _core

SLICE = 200_000
# What a backward pass sends: layers of a few slices, and small ones such as biases.
LAYERS = [SLICE, SLICE, 2_000, SLICE, 500, SLICE, SLICE, SLICE, SLICE, 4_000]
LARGE_LAYERS = [SLICE] * 10

NEAR = (50e6, 2e-4)  # bytes a second, seconds there and back
FAST = (1.25e9, 5e-4)
LONG = (125e6, 2e-2)


class Link:
    """A link in simulated time, and an estimator that sees what a sender on it would see."""

    def __init__(self, bandwidth: float, round_trip: float, fixed_bytes: int = 0) -> None:
        self.estimator = _core.WindowEstimator(SLICE, fixed_bytes)
        self.bandwidth = bandwidth
        self.round_trip = round_trip
        self.now = 0.0
        self._free = 0.0  # when the last byte has left
        self._flights: deque[tuple[float, int]] = deque()  # (acknowledged at, bytes)

    def send(self, sizes: list[int]) -> None:
        """Sends messages as the window admits them; returns when all are acknowledged."""
        for size in sizes:
            while self._flights and self._in_flight() + size > self.estimator.window_bytes():
                self._take_acknowledgement()
            self.estimator.sent(size, self.now)
            self._free = max(self._free, self.now) + size / self.bandwidth
            self._flights.append((self._free + self.round_trip, size))
        while self._flights:
            self._take_acknowledgement()

    def train(self, layers: list[int], iterations: int = 100) -> None:
        """Sends the layers' gradients again and again; between them it computes and pings."""
        for _ in range(iterations):
            self.estimator.round_trip(self.round_trip)
            self.send(layers)
            self.now += 0.1

    def busy(self) -> float:
        """Which part of the bandwidth a long burst gets."""
        begun = self.now
        self.send([SLICE] * 200)
        return 200 * SLICE / self.bandwidth / (self.now - begun - self.round_trip)

    def slices_on_the_way(self) -> float:
        """What the link holds during a round trip, and while a busy machine's thread wakes up."""
        return self.bandwidth * (self.round_trip + 0.0002) / SLICE

    def slices_advised(self) -> float:
        return self.estimator.window_bytes() / SLICE

    def _in_flight(self) -> int:
        return sum(size for _, size in self._flights)

    def _take_acknowledgement(self) -> None:
        self.now, size = self._flights.popleft()
        self.estimator.acknowledged(size, self.now)


@given(st.integers(1, 1 << 40), st.lists(st.integers(1, 1 << 30), max_size=20))
def test_a_fixed_window_stays(fixed_bytes: int, sizes: list[int]) -> None:
    link = Link(*LONG, fixed_bytes=fixed_bytes)
    assert link.estimator.window_bytes() == fixed_bytes
    link.send(sizes)
    assert link.estimator.window_bytes() == fixed_bytes


def test_before_anything_is_known_it_admits_little_over_one_slice() -> None:
    assert 1 <= Link(*FAST).slices_advised() <= 1.5


@pytest.mark.parametrize("layers", [LAYERS, LARGE_LAYERS], ids=["small too", "large only"])
def test_a_slow_near_link_gets_little_over_one_slice(layers: list[int]) -> None:
    link = Link(*NEAR)
    link.train(layers)
    assert 1 <= link.slices_advised() <= 1.5
    assert link.busy() > 0.9


@pytest.mark.parametrize("layers", [LAYERS, LARGE_LAYERS], ids=["small too", "large only"])
@pytest.mark.parametrize("which", [FAST, LONG], ids=["fast", "long"])
def test_a_fast_or_long_link_is_kept_busy_with_about_what_it_holds(
    which: tuple[float, float], layers: list[int]
) -> None:
    link = Link(*which)
    link.train(layers)
    assert link.busy() > 0.85
    assert link.slices_advised() <= 1.25 * link.slices_on_the_way() + 2


@given(st.floats(1e7, 2e9), st.floats(1e-5, 5e-2))
def test_any_link_of_moderate_length_is_kept_busy_within_bounds(
    bandwidth: float, round_trip: float
) -> None:
    assume(bandwidth * round_trip < 40 * SLICE)
    link = Link(bandwidth, round_trip)
    link.train(LAYERS)
    held = link.bandwidth * link.round_trip / SLICE
    whole = int(1.25 + held)  # slices that are under way, of 1 + held that would keep it busy
    assert link.busy() > 0.95 * min(1, whole / (1 + held))
    assert link.slices_advised() <= 1.25 * link.slices_on_the_way() + 2


def test_the_window_is_bounded_on_the_longest_links() -> None:
    link = Link(1.25e10, 1.0)
    link.train(LAYERS)
    assert link.slices_advised() <= 66


@pytest.mark.parametrize(("before", "after"), [(FAST, NEAR), (LONG, NEAR), (NEAR, LONG)])
def test_it_adapts_when_the_link_changes(
    before: tuple[float, float], after: tuple[float, float]
) -> None:
    link = Link(*before)
    link.train(LAYERS)
    link.bandwidth, link.round_trip = after
    link.train(LAYERS, iterations=500)
    assert link.busy() > 0.8
    assert link.slices_advised() <= 1.25 * link.slices_on_the_way() + 2
