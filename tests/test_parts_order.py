"""How the order in which layers need their parameters is learned (csrc/order.h)."""
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvstore_ext import _core

WAITED = 0.1  # seconds between push and readiness that mean: it was still being computed
AT_ONCE = 0.0
FIRST_ROUND = 2  # before that nothing is learned: memory is allocated, kernels are tuned


class Watched:
    """A learner, and what it has learned each time."""

    def __init__(self) -> None:
        self.learned: list[list[int]] = []
        self._learner = _core.OrderLearner(self.learned.append)

    def iteration(self, sightings: list[tuple[int, float, int]], number: int) -> None:
        """Shows (key, seconds, caller's priority) in the order in which the gradients are ready."""
        for key, seconds, priority in sightings:
            self._learner.ready(key, number, seconds, priority)


@st.composite
def backward_passes(draw: st.DrawFn) -> list[tuple[int, float, int]]:
    """Distinct keys, at least two of them waited for."""
    keys = draw(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=30, unique=True))
    waited = draw(st.sets(st.sampled_from(keys), min_size=2))
    priorities = st.integers(-(2**31), 2**31 - 1)
    return [(key, WAITED if key in waited else AT_ONCE, draw(priorities)) for key in keys]


@given(backward_passes())
def test_keys_waited_for_are_needed_in_the_reverse_of_their_readiness(
    sightings: list[tuple[int, float, int]]
) -> None:
    watched = Watched()
    for number in range(FIRST_ROUND, FIRST_ROUND + 3):
        watched.iteration(sightings, number)
    waited = [key for key, seconds, _ in sightings if seconds == WAITED]
    assert len(watched.learned) == 1, "it is learned once, and told once"
    assert watched.learned[0][: len(waited)] == waited[::-1]


@given(backward_passes())
def test_keys_ready_at_once_come_last_by_the_callers_priority(
    sightings: list[tuple[int, float, int]]
) -> None:
    watched = Watched()
    watched.iteration(sightings, FIRST_ROUND)
    watched.iteration(sightings, FIRST_ROUND + 1)
    at_once = [(-priority, key) for key, seconds, priority in sightings if seconds == AT_ONCE]
    first_come = sorted(at_once, key=lambda pair: pair[0])  # equal ones as they came
    waited = len(sightings) - len(at_once)
    assert watched.learned[0][waited:] == [key for _, key in first_come]


@given(backward_passes())
def test_the_first_rounds_teach_nothing(sightings: list[tuple[int, float, int]]) -> None:
    watched = Watched()
    for number in range(FIRST_ROUND):
        watched.iteration(sightings, number)
    watched.iteration(sightings[::-1], FIRST_ROUND)
    assert watched.learned == []
    watched.iteration(sightings, FIRST_ROUND + 1)
    waited = [key for key, seconds, _ in sightings if seconds == WAITED]
    assert watched.learned[0][: len(waited)] == waited


@given(st.permutations(range(10)))
def test_nothing_is_learned_where_nothing_was_waited_for(keys: list[int]) -> None:
    watched = Watched()
    for number in range(FIRST_ROUND, FIRST_ROUND + 5):
        watched.iteration([(key, AT_ONCE, -key) for key in keys], number)
    assert watched.learned == []


def test_a_later_iteration_teaches_where_the_earlier_ones_did_not() -> None:
    watched = Watched()
    watched.iteration([(0, AT_ONCE, 0), (1, AT_ONCE, -1)], FIRST_ROUND)
    watched.iteration([(1, WAITED, 0), (0, WAITED, -1)], FIRST_ROUND + 1)
    assert watched.learned == []
    watched.iteration([(1, AT_ONCE, 0)], FIRST_ROUND + 2)
    assert watched.learned == [[0, 1]]


def test_one_key_alone_teaches_nothing() -> None:
    watched = Watched()
    for number in range(FIRST_ROUND, FIRST_ROUND + 3):
        watched.iteration([(0, AT_ONCE, 0), (1, WAITED, -1)], number)
    assert watched.learned == []
