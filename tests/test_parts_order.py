"""How the order in which layers need their parameters is learned (csrc/order.h)."""
from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from kvstore_ext import _core

FIRST_ROUND = 2  # before that nothing is learned: memory is allocated, kernels are tuned
LAST_ROUND = 100
READY = 1.0  # seconds after the begin of an iteration: when the first gradient is ready


@dataclass(frozen=True)
class Sighting:
    """A key whose gradient becomes ready, in the order of readiness."""

    key: int
    pushed: float  # seconds after the begin of the iteration
    waited: bool = True  # for its computation
    priority: int = 0  # the caller's


class Watched:
    """A learner, and what it has learned each time."""

    def __init__(self) -> None:
        self.learned: list[list[int]] = []
        self._learner = _core.OrderLearner(self.learned.append)

    def iteration(self, sightings: list[Sighting], number: int) -> None:
        for position, seen in enumerate(sightings):
            now = READY + position if seen.waited else seen.pushed
            times = (10_000.0 * number + seen.pushed, 10_000.0 * number + now)
            self._learner.ready(seen.key, number, *times, seen.priority)

    def iterations(self, sightings: list[Sighting], first: int = FIRST_ROUND) -> None:
        for number in range(first, first + 3):
            self.iteration(sightings, number)


@st.composite
def backward_passes(draw: st.DrawFn) -> list[Sighting]:
    """Distinct keys, at least two of them waited for, and those pushed in the opposite order."""
    keys = draw(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=30, unique=True))
    waited = draw(st.sets(st.sampled_from(keys), min_size=2))
    priorities = st.integers(-(2**31), 2**31 - 1)
    return [
        Sighting(key, -position * 1e-3, key in waited, draw(priorities))
        for position, key in enumerate(keys)
    ]


def waited_for(sightings: list[Sighting]) -> list[int]:
    return [seen.key for seen in sightings if seen.waited]


@given(backward_passes())
def test_keys_waited_for_are_needed_in_the_reverse_of_their_readiness(
    sightings: list[Sighting]
) -> None:
    watched = Watched()
    watched.iterations(sightings)
    assert len(watched.learned) == 1, "it is learned once, and told once"
    assert sorted(watched.learned[0]) == sorted(seen.key for seen in sightings)
    waited = waited_for(sightings)
    assert watched.learned[0][: len(waited)] == waited[::-1]


@given(backward_passes())
def test_keys_ready_at_once_come_last_by_the_callers_priority(sightings: list[Sighting]) -> None:
    watched = Watched()
    watched.iterations(sightings)
    at_once = [seen for seen in sightings if not seen.waited]
    expected = sorted(at_once, key=lambda seen: -seen.priority)  # equal ones as they came
    last = watched.learned[0][len(sightings) - len(at_once) :]
    assert last == [seen.key for seen in expected]


@given(backward_passes())
def test_the_first_rounds_teach_nothing(sightings: list[Sighting]) -> None:
    watched = Watched()
    for number in range(FIRST_ROUND):
        watched.iteration(sightings[::-1], number)
    assert watched.learned == []
    watched.iteration(sightings, FIRST_ROUND)
    waited = waited_for(sightings)
    assert watched.learned[0][: len(waited)] == waited[::-1]


@given(st.permutations(range(10)))
def test_nothing_is_learned_where_nothing_was_waited_for(keys: list[int]) -> None:
    watched = Watched()
    watched.iterations([Sighting(key, 0.0, waited=False, priority=-key) for key in keys])
    assert watched.learned == []


@given(st.permutations(range(10)))
def test_nothing_is_learned_where_keys_begin_as_they_were_pushed(keys: list[int]) -> None:
    watched = Watched()
    watched.iterations([Sighting(key, i * 1e-3) for i, key in enumerate(keys)])
    assert watched.learned == [], "they waited for a thread, not for their computation"


@given(st.integers(0, 18))
def test_two_threads_that_begin_in_turns_teach_nothing(swapped: int) -> None:
    pushed = [i * 1e-3 for i in range(20)]
    pushed[swapped : swapped + 2] = pushed[swapped : swapped + 2][::-1]
    watched = Watched()
    watched.iterations([Sighting(key, time) for key, time in enumerate(pushed)])
    assert watched.learned == []


@given(st.permutations(range(20)))
def test_whatever_the_order_of_pushing_the_order_learned_is_that_of_readiness(
    names: list[int]
) -> None:
    watched = Watched()
    watched.iterations([Sighting(key, name * 1e-3) for key, name in enumerate(names)])
    assert watched.learned in ([], [list(range(20))[::-1]])


def test_a_later_iteration_teaches_where_the_earlier_ones_did_not() -> None:
    watched = Watched()
    watched.iteration([Sighting(0, 0, waited=False), Sighting(1, 0, waited=False)], FIRST_ROUND)
    watched.iteration([Sighting(1, 0.1), Sighting(0, 0)], FIRST_ROUND + 1)
    assert watched.learned == []
    watched.iteration([Sighting(1, 0)], FIRST_ROUND + 2)
    assert watched.learned == [[0, 1]]


def test_one_key_waited_for_teaches_nothing() -> None:
    watched = Watched()
    watched.iterations([Sighting(0, 0, waited=False), Sighting(1, 0)])
    assert watched.learned == []


def test_who_has_taught_nothing_for_long_will_teach_nothing() -> None:
    watched = Watched()
    watched.iterations([Sighting(0, 0.1), Sighting(1, 0)], first=LAST_ROUND + 1)
    assert watched.learned == []
