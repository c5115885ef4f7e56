"""How the order in which layers need their parameters is learned (csrc/order.h)."""
from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from kvstore_ext import _core

FIRST_ROUND = 1  # that of the initial values is 0
LAST_ROUND = 100
LESSONS = 5  # iterations that are averaged
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

    def iterations(self, *iterations: list[Sighting], first: int = FIRST_ROUND) -> None:
        """Those given, and the begin of one more, which ends the last of them."""
        for number, sightings in enumerate(iterations, first):
            self.iteration(sightings, number)
        self.iteration(iterations[-1][:1], first + len(iterations))


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


@given(backward_passes(), st.integers(1, LESSONS + 2))
def test_keys_waited_for_are_needed_in_the_reverse_of_their_readiness(
    sightings: list[Sighting], iterations: int
) -> None:
    watched = Watched()
    watched.iterations(*[sightings] * iterations)
    assert len(watched.learned) == 1, "it is told again only when it has changed"
    assert sorted(watched.learned[0]) == sorted(seen.key for seen in sightings)
    waited = waited_for(sightings)
    assert watched.learned[0][: len(waited)] == waited[::-1]


@given(backward_passes())
def test_keys_ready_at_once_come_last_by_the_callers_priority(sightings: list[Sighting]) -> None:
    watched = Watched()
    watched.iterations(sightings, sightings)
    at_once = [seen for seen in sightings if not seen.waited]
    expected = sorted(at_once, key=lambda seen: (-seen.priority, seen.key))
    last = watched.learned[0][len(sightings) - len(at_once) :]
    assert last == [seen.key for seen in expected]


@given(st.permutations(range(20)), st.integers(0, 18), st.integers(0, 18))
def test_neighbours_that_change_places_now_and_then_are_put_right(
    keys: list[int], first: int, second: int
) -> None:
    """Two of five iterations have a pair of neighbours the wrong way round, each another pair."""
    right = [Sighting(key, -position * 1e-3) for position, key in enumerate(keys)]
    wrong = []
    for pair in (first, second):
        swapped = list(right)
        swapped[pair : pair + 2] = swapped[pair : pair + 2][::-1]
        wrong.append(swapped)
    watched = Watched()
    watched.iterations(*wrong, right, right, right)
    assert watched.learned[-1] == keys[::-1]


@given(backward_passes())
def test_the_order_is_final_after_the_lessons(sightings: list[Sighting]) -> None:
    watched = Watched()
    watched.iterations(*[sightings] * LESSONS)
    watched.iterations(*[sightings[::-1]] * LESSONS, first=FIRST_ROUND + LESSONS + 1)
    assert len(watched.learned) == 1


@given(backward_passes())
def test_initial_values_teach_nothing(sightings: list[Sighting]) -> None:
    watched = Watched()
    watched.iterations(sightings[::-1], sightings, first=FIRST_ROUND - 1)
    waited = waited_for(sightings)
    assert [order[: len(waited)] for order in watched.learned] == [waited[::-1]]


@given(st.permutations(range(10)))
def test_nothing_is_learned_where_nothing_was_waited_for(keys: list[int]) -> None:
    watched = Watched()
    sightings = [Sighting(key, 0.0, waited=False, priority=-key) for key in keys]
    watched.iterations(sightings, sightings)
    assert watched.learned == []


@given(st.permutations(range(10)))
def test_nothing_is_learned_where_keys_begin_as_they_were_pushed(keys: list[int]) -> None:
    watched = Watched()
    sightings = [Sighting(key, i * 1e-3) for i, key in enumerate(keys)]
    watched.iterations(sightings, sightings)
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
    at_once = [Sighting(0, 0, waited=False), Sighting(1, 0, waited=False)]
    watched.iterations(at_once, [Sighting(1, 0.1), Sighting(0, 0)])
    assert watched.learned == [[0, 1]]


def test_a_key_that_comes_late_finds_its_place() -> None:
    watched = Watched()
    few = [Sighting(2, 0.2), Sighting(0, 0)]
    watched.iterations(few, [Sighting(2, 0.2), Sighting(1, 0.1), Sighting(0, 0)])
    assert watched.learned == [[0, 2], [0, 1, 2]]


def test_one_key_waited_for_teaches_nothing() -> None:
    watched = Watched()
    watched.iterations([Sighting(0, 0, waited=False), Sighting(1, 0)])
    assert watched.learned == []


def test_who_has_taught_nothing_for_long_will_teach_nothing() -> None:
    watched = Watched()
    watched.iterations([Sighting(0, 0.1), Sighting(1, 0)], first=LAST_ROUND + 1)
    assert watched.learned == []
