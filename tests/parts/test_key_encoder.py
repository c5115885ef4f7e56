"""One key at a worker (csrc/codecs/key_encoder.h): slices, scalers, and what is carried over."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvstore_ext import _core

from tests.support.codec_checks import (
    DRAWS,
    METHODS,
    assert_same,
    assert_same_bytes,
    core_draws,
    decoded,
    finite_values,
    gradients,
    kernels,
    named,
)
from tests.support.reference.codecs import (
    DGC,
    Chosen,
    Levels,
    Method,
    Scaled,
    Signs,
    TernGrad,
    Votes,
)
from tests.support.reference.formulas import FLOAT_MAX, Draws
from tests.support.reference.rounds import make_encoder

KERNELS = _core.kernels()
WITH_FEEDBACK = [method for method in METHODS if method.carries_over]
WITHOUT_STATE = [m for m in METHODS if not m.carries_over and not isinstance(m, DGC)]
WORKERS = 4


def core_encoder(method: Method, elements: int) -> _core.KeyEncoder:
    """The core's, without momentum."""
    return _core.KeyEncoder(method.specification, WORKERS, elements)


def cut(elements: int, length: int, alignment: int) -> list[tuple[int, int]]:
    """Offsets and lengths of slices of about that length."""
    length = max(1, length // alignment) * alignment
    begins = range(0, max(elements, 1), length)
    return [(begin, min(length, elements - begin)) for begin in begins]


def part_of(reduced: object, offset: int, length: int, alignment: int) -> object:
    """What the reference has reduced a slice of the key to, from what it has the key."""
    end = offset + length
    first, last = offset // alignment, -(-end // alignment)
    if isinstance(reduced, Scaled):
        return Scaled(reduced.scaler, reduced.digits[offset:end])
    if isinstance(reduced, Levels):
        return Levels(reduced.norms[first:last], reduced.levels[offset:end])
    if isinstance(reduced, Signs):
        above, below = reduced.above[first:last], reduced.below[first:last]
        return Signs(reduced.positive[offset:end], above, below)
    if isinstance(reduced, Votes):
        return Votes(reduced.positive[offset:end], reduced.worth)
    if isinstance(reduced, Chosen):
        inside = (reduced.indices >= offset) & (reduced.indices < end)
        return Chosen(reduced.values[offset:end], reduced.indices[inside] - offset)
    assert isinstance(reduced, np.ndarray)
    return reduced[offset:end]


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_slices_in_any_order_are_the_references_round_after_round(method: Method) -> None:
    random = np.random.RandomState(1)
    for elements, length in [(0, 10), (1, 10), (1000, 161), (1000, 400), (140_000, 66_000)]:
        normal = gradients(elements)["normal"]
        encoders = {name: core_encoder(method, elements) for name in KERNELS}
        expected = make_encoder(method, elements, WORKERS)
        for number in range(1, 5):
            draws = dataclasses.replace(DRAWS, round=number)
            gradient = normal * np.float32(number)
            own = expected.prepare(gradient, number)
            # Perhaps another worker's.
            scaler = own * np.float32(1.5) if method.shares_scaler else own
            reduced = expected.reduce(scaler, draws.numbers(elements))
            slices = cut(elements, length, method.alignment)
            random.shuffle(slices)
            packed = [method.pack(part_of(reduced, *each, method.alignment)) for each in slices]
            for name, ours in encoders.items():
                with kernels(name):
                    assert ours.prepare(gradient, number) == own, name
                    for (offset, size), data in zip(slices, packed):
                        found = ours.encode(offset, size, float(scaler), core_draws(draws))
                        assert_same_bytes(found, data, f"{name}, {number}: {offset}, {size}")


@given(st.sampled_from(WITH_FEEDBACK), st.lists(finite_values(100), min_size=1, max_size=4))
def test_what_is_sent_and_what_is_carried_over_is_what_came_in(
    method: Method, gradients: list[np.ndarray]
) -> None:
    elements = min(gradient.size for gradient in gradients)
    for name in KERNELS:
        with kernels(name):
            codec = _core.Codec(method.specification, WORKERS)
            encoder = core_encoder(method, elements)
            carried = np.zeros(elements, np.float32)
            for number, whole in enumerate(gradients, 1):
                gradient = np.ascontiguousarray(whole[:elements]) / np.float32(8)
                came_in = carried + gradient
                scaler = encoder.prepare(gradient, number)
                data = encoder.encode(0, elements, scaler, core_draws(DRAWS))
                carried = came_in - decoded(codec, elements, data)
                assert_same(encoder.state(), carried)


@pytest.mark.parametrize("method", WITHOUT_STATE, ids=named)
def test_without_error_feedback_nothing_is_carried_over(method: Method) -> None:
    encoder = core_encoder(method, 1000)
    gradient = gradients(1000)["normal"]
    scaler = encoder.prepare(gradient, 1)
    encoder.encode(0, 1000, scaler, core_draws(DRAWS))
    assert encoder.state().size == 0
    with pytest.raises(ValueError, match="1000"):
        encoder.set_state(np.zeros(1000, np.float32))


@pytest.mark.parametrize("sharing", [True, False])
def test_a_worker_clips_at_its_own_limit_also_where_anothers_scaler_is_larger(
    sharing: bool
) -> None:
    gradient = gradients(10_000)["normal"]
    gradient[17] = 1.0
    encoder = core_encoder(TernGrad(sharing=sharing), gradient.size)
    own = encoder.prepare(gradient, 1)
    assert own < 0.1, "the outlier is clipped"
    sums = np.zeros(1, np.float64)
    times = 400
    shared = 4 * own
    for seed in range(times):
        draws = core_draws(Draws(seed, 0, 0, 1))
        data = encoder.encode(0, gradient.size, shared, draws)
        sums += decoded(_core.Codec(TernGrad().specification, 1), gradient.size, data)[17]
    # A quarter of 400, whose deviation is 8.7; all 400 where it is clipped at the shared scaler.
    assert 40 < sums[0] / shared < 160


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", METHODS, ids=named)
def test_a_round_that_is_not_finite_leaves_what_is_carried_over_alone(
    method: Method, bad: float
) -> None:
    elements = 1000
    spoilt, whole = core_encoder(method, elements), core_encoder(method, elements)
    gradient = gradients(elements)["normal"]
    broken = gradient.copy()
    broken[elements - 1] = bad
    for number in (1, 2, 3):
        assert np.isnan(spoilt.prepare(broken, number))
        scaler = spoilt.prepare(gradient, number)
        assert scaler == whole.prepare(gradient, number)
        data = spoilt.encode(0, elements, scaler, core_draws(DRAWS))
        assert data == whole.encode(0, elements, scaler, core_draws(DRAWS))
        before = whole.state()
        assert np.isnan(spoilt.prepare(broken, number + 1))
        assert_same(spoilt.state(), before)


@pytest.mark.parametrize("method", WITH_FEEDBACK, ids=named)
def test_a_sum_with_what_was_carried_over_that_is_not_finite_is_no_round_either(
    method: Method
) -> None:
    encoder = core_encoder(method, 20)
    large = np.full(20, FLOAT_MAX, np.float32)
    encoder.set_state(large)
    assert np.isnan(encoder.prepare(large, 1))
    assert_same(encoder.state(), large)


@pytest.mark.parametrize("method", [*WITH_FEEDBACK, DGC(0.01, 8, 4, 1.0)], ids=named)
def test_a_state_taken_over_continues_to_the_same_bytes(method: Method) -> None:
    elements = 3000
    first, second = core_encoder(method, elements), core_encoder(method, elements)
    for encoder in (first, second):
        encoder.set_momentum(0.9)
    random = np.random.RandomState(3)
    for number in range(1, 9):
        gradient = random.standard_normal(elements).astype(np.float32)
        found = []
        for encoder in (first, second):
            scaler = encoder.prepare(gradient, number)
            draws = core_draws(dataclasses.replace(DRAWS, round=number))
            found.append(encoder.encode(0, elements, scaler, draws))
        if number <= 4:
            assert first.state().any()
            second = core_encoder(method, elements)
            second.set_momentum(0.9)
            second.set_state(first.state())
        assert_same_bytes(found[1], found[0], f"round {number}")


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_a_state_of_another_size_is_refused(method: Method) -> None:
    encoder = core_encoder(method, 1000)
    assert encoder.state().size == 0, "none before the first round"
    gradient = gradients(1000)["normal"]
    encoder.encode(0, 1000, encoder.prepare(gradient, 1), core_draws(DRAWS))
    state = encoder.state()
    for wrong in (state.size + 1, state.size + 1000, 17):
        with pytest.raises(ValueError, match=str(wrong)):
            encoder.set_state(np.zeros(wrong, np.float32))
    assert_same(encoder.state(), state)


@pytest.mark.parametrize("method", [m for m in METHODS if m.carries_over], ids=named)
def test_a_discarded_round_leaves_what_is_carried_over_as_it_was(method: Method) -> None:
    encoder = _core.KeyEncoder(method.specification, 2, 500)
    values = np.random.RandomState(1).standard_normal((3, 500)).astype(np.float32)
    encode(encoder, values[0], 1)
    before = encoder.state()
    encode(encoder, values[1], 2)
    assert not np.array_equal(encoder.state(), before)
    encoder.discard()
    assert_same(encoder.state(), before)
    again = _core.KeyEncoder(method.specification, 2, 500)
    again.set_state(before)
    assert encode(encoder, values[2], 3) == encode(again, values[2], 3)


@pytest.mark.parametrize("method", [m for m in METHODS if m.carries_over], ids=named)
def test_a_round_that_travels_as_it_is_takes_along_what_was_carried_over(method: Method) -> None:
    encoder = _core.KeyEncoder(method.specification, 2, 500)
    values = np.random.RandomState(1).standard_normal((2, 500)).astype(np.float32)
    encode(encoder, values[0], 1)
    carried = encoder.state()
    encoder.prepare(values[1], 2)
    parts = [encoder.take_all(0, 200), encoder.take_all(200, 300)]
    assert_same(np.concatenate(parts), carried + values[1])
    assert not encoder.state().any()


def test_dgc_keeps_what_a_discarded_round_would_have_sent() -> None:
    encoder = _core.KeyEncoder(DGC(final_ratio=0.01).specification, 2, 500)
    encoder.set_momentum(0.9)
    values = np.random.RandomState(1).standard_normal((2, 500)).astype(np.float32)
    encode(encoder, values[0], 1)
    sums, velocities = np.split(encoder.state(), 2)
    encode(encoder, values[1], 2)
    encoder.discard()
    moved = np.float32(0.9) * velocities + values[1]
    assert_same(encoder.state(), np.concatenate([sums + moved, moved]))


def test_dgc_without_selection_is_sgd_with_momentum() -> None:
    encoder = _core.KeyEncoder(DGC(final_ratio=0.01).specification, 2, 500)
    encoder.set_momentum(0.9)
    velocity = np.zeros(500, np.float32)
    for number in range(1, 5):
        gradient = np.random.RandomState(number).standard_normal(500).astype(np.float32)
        velocity = np.float32(0.9) * velocity + gradient
        encoder.prepare(gradient, number)
        assert_same(encoder.take_all(0, 500), velocity)
    encoder.discard()
    assert_same(np.split(encoder.state(), 2)[0], velocity)


def encode(encoder: _core.KeyEncoder, gradient: np.ndarray, number: int) -> bytes:
    """A round of a whole key."""
    scaler = encoder.prepare(gradient, number)
    return encoder.encode(0, gradient.size, scaler, _core.Draws(1, 0, 3, number))
