"""The reference (formulas.py) against itself, and against examples done by hand."""
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.reference import formulas, packing
from tests.support.reference.codecs import QSGD, Levels, OneBit, Signs

SEEDS = st.integers(0, 2**32 - 1)


def digits(seed: int, elements: int, low: int, high: int) -> np.ndarray:
    """From low to high."""
    return np.random.RandomState(seed).randint(low, high + 1, elements)


@given(SEEDS, st.integers(0, 2000))
def test_ternary_digits_come_out_as_they_went_in(seed: int, elements: int) -> None:
    came_in = digits(seed, elements, -1, 1)
    data = packing.pack_ternary(np.float32(0.5), came_in)
    assert len(data) == 4 + elements // 160 * 32 + -(-(elements % 160) // 5)
    scaler, found = packing.unpack_ternary(data, elements)
    assert scaler == 0.5
    assert np.array_equal(found, came_in)


@given(SEEDS, st.integers(0, 3000), st.integers(1, 300))
def test_digits_of_sums_come_out_as_they_went_in(seed: int, elements: int, workers: int) -> None:
    came_in = digits(seed, elements, -workers, workers)
    data = packing.pack_sum(np.float32(0.5), came_in, workers)
    scaler, found = packing.unpack_sum(data, elements, workers)
    assert scaler == 0.5
    assert np.array_equal(found, came_in)


@given(SEEDS, st.integers(0, 300), st.integers(1, 16))
def test_codes_come_out_as_they_went_in(seed: int, elements: int, bits: int) -> None:
    came_in = digits(seed, elements, 0, 2**bits - 1)
    assert np.array_equal(
        packing.unpack_bits(packing.pack_bits(came_in, bits), elements, bits), came_in
    )


@given(SEEDS, st.integers(0, 200_000))
def test_sparse_values_come_out_as_they_went_in(seed: int, elements: int) -> None:
    came_in = np.zeros(elements, np.float32)
    came_in[: elements // 2 : 7] = 1 + seed % 5
    came_in[-1:] = -1
    data = packing.pack_sparse(came_in, np.flatnonzero(came_in))
    assert np.array_equal(packing.unpack_sparse(data, elements), came_in)


def test_bytes_done_by_hand() -> None:
    """From the formats' description: digits of five elements, of seven, codes, indices."""
    assert packing.pack_ternary(np.float32(1), np.array([-1, 0, 1, 1, 0]))[4:] == bytes(
        [0 + 3 * 1 + 9 * 2 + 27 * 2 + 81 * 1]
    )
    # Two bytes: the even places of 7 digits in the first, the odd ones in the second.
    assert packing.pack_ternary(np.float32(1), np.array([1, -1, 0, 0, -1, 1, 1]))[4:] == bytes(
        [2 + 3 * 1 + 9 * 0 + 27 * 2, 0 + 3 * 1 + 9 * 2]
    )
    assert packing.pack_bits(np.array([1, 7, 2]), 3) == bytes([0b10111001, 0b0])
    assert packing.pack_bits(np.array([5, 6, 7]), 3) == bytes([0b11110101, 0b1])
    values = np.zeros(65_540, np.float32)
    values[[3, 65_538]] = [1, 2]
    assert packing.pack_sparse(values, np.array([3, 65_538])) == bytes(
        [1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 2, 0, 0, 0, 0x80, 0x3F, 0, 0, 0, 0x40]
    )


@pytest.mark.parametrize(
    ("workers", "expected"), [(1, (1, 5)), (2, (5, 17)), (4, (2, 5)), (64, (8, 9)), (127, (1, 1))]
)
def test_words_hold_as_many_digits_as_they_can(workers: int, expected: tuple[int, int]) -> None:
    assert packing.word_size(2 * workers + 1) == expected


def test_the_scaler_is_the_largest_within_the_limit() -> None:
    values = np.array([3.0, -1.0, 1.0, -3.0], np.float32)
    sigma = math.sqrt(5)
    assert formulas.terngrad_scaler(values, 0.0) == 3
    assert formulas.terngrad_scaler(values, 1.0) == np.float32(sigma)
    assert formulas.terngrad_scaler(values, 2.0) == 3
    assert formulas.terngrad_scaler(np.full(7, 0.1, np.float32), 1.0) == np.float32(0.1)
    assert formulas.terngrad_scaler(np.zeros(3, np.float32), 2.5) == 0
    assert formulas.terngrad_scaler(np.zeros(0, np.float32), 2.5) == 0
    assert np.isnan(formulas.terngrad_scaler(np.array([1, np.inf], np.float32), 2.5))


def test_certain_events_happen_and_impossible_ones_do_not() -> None:
    draws = np.array([0, 2**24 - 1], np.uint32)
    ones, zeros = np.ones(2, np.float32), np.zeros(2, np.float32)
    assert formulas.happens(ones, draws).all()
    assert not formulas.happens(zeros, draws).any()


def test_levels_of_a_bucket_done_by_hand() -> None:
    method = QSGD(bits=3, bucket=2, euclidean=False)
    values = np.array([3.0, -1.0, 0.0, 0.0, -5.0], np.float32)
    certain = method.reduce(values, np.float32(0), np.full(5, 2**24 - 1, np.uint32))
    assert isinstance(certain, Levels)
    assert certain.norms.tolist() == [3, 0, 5]
    assert certain.levels.tolist() == [3, -1, 0, 0, -3]
    assert method.expand(certain).tolist() == [3, -1, 0, 0, -5]
    assert formulas.bucket_norms(values, 2, True).tolist() == [np.float32(math.sqrt(10)), 0, 5]


def test_means_of_a_bucket_done_by_hand() -> None:
    method = OneBit(bucket=3)
    values = np.array([1.0, 2.0, -4.0, -1.0, -3.0], np.float32)
    reduced = method.reduce(values, np.float32(0), np.zeros(5, np.uint32))
    assert isinstance(reduced, Signs)
    assert reduced.above.tolist() == [1.5, 0]
    assert reduced.below.tolist() == [-4, -2]
    assert method.expand(reduced).tolist() == [1.5, 1.5, -4, -2, -2]


def test_warm_up_ends_with_the_last_share() -> None:
    shares = [formulas.dgc_ratio(number, 0.001, 4, 2) for number in range(1, 7)]
    halfway = 0.25 * math.sqrt(0.001 / 0.25)
    assert shares == pytest.approx([0.25, 0.25, halfway, halfway, 0.001, 0.001])
    assert formulas.dgc_ratio(1, 0.3, 4, 2) == 0.3
    assert formulas.dgc_count(0.001, 0) == 0
    assert formulas.dgc_count(0.001, 1) == 1
    assert formulas.dgc_count(0.001, 2001) == 3


def test_the_first_of_equals_are_the_largest() -> None:
    values = np.array([1.0, -2.0, 2.0, 0.0, 2.0], np.float32)
    assert formulas.largest(values, 2).tolist() == [1, 2]
    assert formulas.largest(values, 4).tolist() == [0, 1, 2, 4]


def test_sums_in_lanes_are_sums() -> None:
    values = np.random.RandomState(0).standard_normal(1001).astype(np.float32)
    assert formulas.lane_sum(values) == pytest.approx(math.fsum(values.tolist()), rel=1e-12)
    assert formulas.lane_sum(values[:0]) == 0
