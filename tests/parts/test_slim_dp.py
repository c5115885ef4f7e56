"""The parts of Slim-DP that need no network: explorers, and their shares of the slices."""
from __future__ import annotations

from pathlib import Path

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvstore_ext import _core
from scipy import stats

from tests.support.reference.slim_dp import draw_share, explore, stream_of


@st.composite
def cores(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """A core, and how many other elements to draw."""
    elements = draw(st.integers(1, 300))
    random = np.random.RandomState(draw(st.integers(0, 1000)))
    core = random.uniform(size=elements) < draw(st.sampled_from([0, 0.1, 0.5, 0.9, 1]))
    return core, draw(st.integers(0, int((~core).sum())))


def subset(mask: np.ndarray) -> _core.Subset:
    return _core.Subset(mask.size, np.flatnonzero(mask).tolist())


@given(cores(), st.integers(0, 2**64 - 1))
def test_an_explorer_is_the_reference_s(case: tuple[np.ndarray, int], stream: int) -> None:
    core, count = case
    found = np.array(subset(core).explore(count, stream).members(), int)
    np.testing.assert_array_equal(found, np.flatnonzero(explore(core, count, stream)))
    assert len(found) == core.sum() + count
    assert set(np.flatnonzero(core)) <= set(found)


def test_a_key_that_is_left_behind_holds_nobody_up_before_its_core_is_needed(
    tmp_path: Path,
) -> None:
    # So long a core would be waited for.
    store = kvstore_ext.P3Worker(kvstore_ext.Options(silence=3, patience=3))
    store.set_gradient_compression({"type": "slim_dp", "p": 1, "q": 2, "core_delay": 1})
    store.set_optimizer(mx.optimizer.SGD())
    values = [mx.nd.ones((1000,)) for _ in range(2)]
    for key, value in enumerate(values):
        store.broadcast(key, value, out=value)
    for pushed in ((0, 1), (0,), (0,)):
        for key in pushed:
            store.pushpull(key, mx.nd.ones((1000,)), out=values[key])
    store.save_optimizer_states(str(tmp_path / "states"))
    with pytest.raises(kvstore_ext.KVStoreError, match="key 1 has been pushed 1 times"):
        store.pushpull(0, mx.nd.ones((1000,)), out=values[0])
    for _ in range(2):  # it catches up
        store.pushpull(1, mx.nd.ones((1000,)), out=values[1])
    store.pushpull(0, mx.nd.ones((1000,)), out=values[0])
    store.save_optimizer_states(str(tmp_path / "states"))
    store.close()


def test_more_than_there_is_outside_the_core_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="an explorer of 6 elements; 5 are outside"):
        _core.Subset(8, [1, 2, 3]).explore(6, 0)


def test_members_values_are_taken_out_in_order() -> None:
    values = np.arange(130, dtype=np.float32)
    members = [0, 63, 64, 129]
    np.testing.assert_array_equal(_core.Subset(130, members).take_out(values), members)
    with pytest.raises(ValueError, match="129 values of 130 elements"):
        _core.Subset(130, members).take_out(values[1:])


@pytest.mark.parametrize("count", [20, 60])  # drawn; left out
def test_elements_outside_the_core_are_explored_alike(count: int) -> None:
    core = np.arange(100) % 5 == 0
    times = np.zeros(100)
    pairs = 0
    for seed in range(4000):
        members = subset(core).explore(count, stream_of(seed, 1, 2, 3)).members()
        times[members] += 1
        pairs += 1 in members and 2 in members
    assert (times[core] == 4000).all()
    # Without replacement the counts vary less than independent ones, by 1 - count / 80.
    expected = 4000 * count / 80
    deviation = ((times[~core] - expected) ** 2).sum() / (expected * (1 - count / 80))
    assert stats.chi2.cdf(deviation * 79 / 80, 79) < 0.999
    assert stats.binomtest(pairs, 4000, count * (count - 1) / (80 * 79)).pvalue > 1e-3


@given(st.integers(0, 200), st.integers(1, 200), st.floats(0, 1), st.integers(0, 2**64 - 1))
def test_a_share_is_the_reference_s(part: int, others: int, drawn: float, stream: int) -> None:
    arguments = (part + others, part, int(drawn * (part + others)), stream, 3)
    assert _core.draw_share(*arguments) == draw_share(*arguments)


def test_shares_are_hypergeometric() -> None:
    found = [_core.draw_share(90, 30, 25, seed * 7919, seed) for seed in range(4000)]
    counts = np.bincount(found, minlength=26)
    expected = 4000 * stats.hypergeom(90, 30, 25).pmf(np.arange(26))
    often = expected >= 5
    table = [[*each[often], each[~often].sum()] for each in (counts, expected)]
    assert stats.chisquare(*table).pvalue > 1e-3


def test_signatures_tell_sets_apart() -> None:
    members: list[list[int]] = [[], [0], [69], [0, 69]]
    sets = [_core.Subset(70, each) for each in members] + [_core.Subset(71, [])]
    assert len({each.signature() for each in sets}) == len(sets)
    assert _core.Subset(70, [69, 0]).signature() == sets[3].signature()
