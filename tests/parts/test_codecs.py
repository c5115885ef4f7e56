"""The codecs (csrc/codecs/codec.h) give the bytes and values of the reference, on every machine."""
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvstore_ext import _core

from tests.support.codec_checks import (
    DRAWS,
    METHODS,
    SIZES,
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
    QSGD,
    Half,
    Method,
    OneBit,
    Scaled,
    SignSGD,
    TernGrad,
    TwoBit,
)
from tests.support.reference.formulas import Draws

KERNELS = _core.kernels()
NUMBERS = st.integers(0, 2**64 - 1)


@given(NUMBERS, st.integers(0, 2**32 - 1), NUMBERS, NUMBERS, st.integers(0, 2**34))
def test_random_numbers_are_a_function_of_where_they_are_used(
    seed: int, sender: int, key: int, round: int, offset: int
) -> None:
    expected = Draws(seed, sender, key, round).numbers(20, offset)
    draws = _core.Draws(seed, sender, key, round)
    part = draws.from_offset(offset)
    assert [part.get(i) for i in range(20)] == expected.tolist()
    nested = draws.from_offset(offset // 2).from_offset(offset - offset // 2)
    assert nested.get(7) == expected[7]
    assert max(expected) < 2**24


def assert_encodes_as(method: Method, values: np.ndarray, what: str = "") -> None:
    """The core, with all kernels, as the reference: the scaler, the bytes, and what they say."""
    scaler = method.scaler(values)
    reduced = method.reduce(values, scaler, DRAWS.numbers(values.size))
    packed, sent = method.pack(reduced), method.expand(reduced)
    alone = np.float32(0) + sent
    before = np.linspace(-3, 3, values.size, dtype=np.float32)
    after = before + sent
    for name in KERNELS:
        where = f"{name} {what}"
        with kernels(name):
            codec = _core.Codec(method.specification, 4)
            assert codec.scaler(values) == scaler, where
            data = codec.encode(values, float(scaler), core_draws(DRAWS))
            assert_same_bytes(data, packed, where)
            assert_same(decoded(codec, values.size, data), alone, where)
            total = before.copy()
            codec.add_to(total, data)
            assert_same(total, after, where)
            expected = scaler if isinstance(method, TernGrad) else 0
            assert codec.scaler_of(data) == expected, where


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_encodings_are_the_references_with_all_kernels(method: Method) -> None:
    for size in SIZES:
        for kind, values in gradients(size).items():
            assert_encodes_as(method, values, f"{size} {kind}")


@given(st.sampled_from(METHODS), finite_values())
def test_encodings_of_any_values_are_the_references_with_all_kernels(
    method: Method, values: np.ndarray
) -> None:
    assert_encodes_as(method, values)


def assert_sums_as(method: Method, total: np.ndarray, scaler: float, workers: int) -> None:
    """The core, with all kernels, as the reference: what travels back of a sum, and what that
    says."""
    shared = np.float32(scaler)
    reduced = method.reduce_sum(total, shared, DRAWS.numbers(total.size), workers)
    packed = expected = None
    if reduced is not None:
        packed = method.pack_sum(reduced, workers)
        expected = np.float32(0) + method.expand(reduced)
    for name in KERNELS:
        where = f"{name} {total.size}"
        with kernels(name):
            codec = _core.Codec(method.specification, workers)
            data = codec.encode_sum(total, float(shared), core_draws(DRAWS))
            assert_same_bytes(data, packed, where)
            if expected is not None:
                assert_same(codec.decode_sum(total.size, data), expected, where)


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_sums_travel_as_the_references_with_all_kernels(method: Method) -> None:
    for size in SIZES:
        for kind, values in gradients(size).items():
            if kind == "largest":
                continue  # whose sums are not finite
            # A quarter, so that most sums are within the largest that the scaler allows.
            assert_sums_as(method, values / np.float32(4), float(method.scaler(values)), 3)


@given(st.sampled_from(METHODS), finite_values(), st.integers(1, 70))
def test_any_sums_travel_as_the_references_with_all_kernels(
    method: Method, total: np.ndarray, workers: int
) -> None:
    assert_sums_as(method, total, float(method.scaler(total)) / workers, workers)


@pytest.mark.parametrize("workers", [*range(1, 65), 127, 128, 200, 1000, 40_000])
def test_every_number_of_workers_has_its_digits(workers: int) -> None:
    random = np.random.RandomState(workers)
    method = TernGrad()
    for size in (0, 1, 63, 64, 65, 3000):
        digits = random.randint(-workers, workers + 1, size)
        total = method.expand(Scaled(np.float32(0.3), digits))
        assert_sums_as(method, total, 0.3, workers)


@given(
    st.integers(1, 64),
    st.floats(2**-149, 2**100, width=32),
    st.integers(0, 2**32 - 1),
)
def test_a_sum_with_a_shared_scaler_loses_no_digit(
    workers: int, scaler: float, seed: int
) -> None:
    digits = np.random.RandomState(seed).randint(-1, 2, (workers, 300))
    codec = _core.Codec(TernGrad().specification, workers)
    total = np.zeros(300, np.float32)
    for rank in range(workers):
        codec.add_to(total, TernGrad().pack(Scaled(np.float32(scaler), digits[rank])))
    data = codec.encode_sum(total, scaler, core_draws(DRAWS))
    assert data is not None
    expected = np.float32(scaler) * digits.sum(axis=0).astype(np.float32)
    assert_same(codec.decode_sum(300, data), expected)


def test_packed_digits_take_hardly_more_than_their_information() -> None:
    elements = 1_000_000
    values = np.ones(elements, np.float32)
    draws = core_draws(DRAWS)
    for workers in range(1, 65):
        codec = _core.Codec(TernGrad().specification, workers)
        down = codec.encode_sum(values, 1.0, draws)
        assert down is not None
        assert 8 * len(down) / elements <= math.log2(2 * workers + 1) * 1.03, workers
    up = _core.Codec(TernGrad().specification, 64).encode(values, 1.0, draws)
    assert 8 * len(up) / elements <= 1.6 * 1.01


@pytest.mark.parametrize(
    ("method", "workers", "expected"),
    [
        (TernGrad(), 1, 0.2),
        (TernGrad(), 2, 5 / 17),  # digits in base 5: 17 in 5 bytes
        (TernGrad(), 64, 8 / 9),
        (TernGrad(sharing=False), 1, 4.0),
        (QSGD(bits=8, bucket=512), 4, 1 + 4 / 512),
        (QSGD(bits=3, bucket=100), 4, 3 / 8 + 4 / 100),
        (OneBit(bucket=512), 4, 1 / 8 + 8 / 512),
        (SignSGD(), 4, 1 / 8),
        (Half(), 4, 2.0),
        (TwoBit(), 4, 4.0),
        (DGC(warmup=8), 4, 1.5),
        (DGC(final_ratio=0.1), 4, 0.6),
        (DGC(final_ratio=0.001), 4, 0.02),
    ],
    ids=lambda value: named(value) if isinstance(value, Method) else str(value),
)
def test_bytes_per_element_are_those_of_the_way_that_needs_more(
    method: Method, workers: int, expected: float
) -> None:
    codec = _core.Codec(method.specification, workers)
    assert codec.bytes_per_element() == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_a_method_says_what_it_needs(method: Method) -> None:
    codec = _core.Codec(method.specification, 4)
    assert codec.alignment() == method.alignment
    assert codec.shares_scaler() == method.shares_scaler
    assert codec.error_feedback() == method.carries_over


def test_there_are_kernels_for_every_machine_and_unknown_ones_are_refused() -> None:
    assert KERNELS[0] == "plain"
    assert set(KERNELS) <= {"plain", "avx2", "avx512"}
    with pytest.raises(ValueError, match="sse9"):
        _core.use_kernels("sse9")
