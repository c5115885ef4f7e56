"""The sum of a slice over the workers (csrc/aggregator.h), compared with NumPy bit by bit."""
from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kvstore_ext import _core

FLAGS = {np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.float16): 2}
DTYPES = sorted(FLAGS, key=str)


def aggregate(
    arrays: list[np.ndarray], arrival: list[int], deterministic: bool = False
) -> np.ndarray:
    """The sum of one array a worker, which arrive in an order."""
    dtype, elements = arrays[0].dtype, arrays[0].size
    aggregator = _core.Aggregator(FLAGS[dtype], elements, len(arrays), deterministic)
    for rank in arrival:
        aggregator.add(rank, arrays[rank].tobytes())
    assert aggregator.complete()
    return np.frombuffer(aggregator.take(), dtype)


def added_one_by_one(arrays: list[np.ndarray]) -> np.ndarray:
    """What NumPy says, in this order; float16 is added in float32 and rounded once."""
    with np.errstate(all="ignore"):
        wide = np.float32 if arrays[0].dtype == np.float16 else arrays[0].dtype
        total = arrays[0].astype(wide)
        for array in arrays[1:]:
            total = total + array.astype(wide)
        return total.astype(arrays[0].dtype)


def assert_same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    """Asserts equality to the bit, except that one NaN is as good as another."""
    assert found.dtype == expected.dtype
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~number)
    np.testing.assert_array_equal(
        found[number].view(f"u{found.itemsize}"), expected[number].view(f"u{found.itemsize}")
    )


@st.composite
def contributions(draw: st.DrawFn) -> tuple[list[np.ndarray], list[int]]:
    """Arrays of 1 to 6 workers, made of any bits at all, and an order of arrival."""
    dtype = draw(st.sampled_from(DTYPES))
    workers = draw(st.integers(1, 6))
    elements = draw(st.integers(0, 40))
    size = elements * dtype.itemsize
    arrays = [
        np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype)
        for _ in range(workers)
    ]
    return arrays, draw(st.permutations(range(workers)))


@given(contributions())
def test_sums_in_the_order_of_arrival(given: tuple[list[np.ndarray], list[int]]) -> None:
    arrays, arrival = given
    found = aggregate(arrays, arrival)
    assert_same_bits(found, added_one_by_one([arrays[rank] for rank in arrival]))


@given(contributions())
def test_deterministic_sums_in_the_order_of_ranks_whatever_arrives_first(
    given: tuple[list[np.ndarray], list[int]]
) -> None:
    arrays, arrival = given
    assert_same_bits(aggregate(arrays, arrival, deterministic=True), added_one_by_one(arrays))


@given(st.permutations(range(5)), st.sampled_from(DTYPES), st.integers(0, 2**32 - 1))
def test_deterministic_sums_of_gradients_of_many_magnitudes_never_differ(
    arrival: list[int], dtype: np.dtype, seed: int
) -> None:
    random = np.random.default_rng(seed)
    arrays = [
        (random.standard_normal(200) * 10.0 ** random.integers(-3, 3, 200)).astype(dtype)
        for _ in arrival
    ]
    in_order = aggregate(arrays, list(range(5)), deterministic=True)
    assert aggregate(arrays, arrival, deterministic=True).tobytes() == in_order.tobytes()


def test_every_float16_survives_and_is_rounded_as_numpy_rounds_it() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    nothing = np.zeros_like(every)
    tiny = np.full_like(every, np.float16(6e-8))  # the smallest subnormal
    random = np.random.default_rng(0)
    for other in (nothing, tiny, every, every[::-1], random.permutation(every)):
        other = np.ascontiguousarray(other)
        assert_same_bits(aggregate([every, other], [0, 1]), added_one_by_one([every, other]))


def test_one_workers_float16_keep_their_very_bits() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    assert aggregate([every], [0]).tobytes() == every.tobytes()


def test_float16_is_summed_in_float32() -> None:
    arrays = [np.array([value], np.float16) for value in (2048, 1, 1, 60000, 60000, -60000)]
    assert aggregate(arrays[:3], [0, 1, 2]) == 2050  # 2048 + 1 is 2048 in float16
    assert aggregate(arrays[3:], [0, 1, 2]) == 60000  # 120000 is infinite in float16


@given(st.integers(2, 6), st.data())
def test_it_counts_senders_and_names_who_is_missing(workers: int, data: st.DataObject) -> None:
    aggregator = _core.Aggregator(0, 1, workers, data.draw(st.booleans()))
    arrival = data.draw(st.permutations(range(workers)))
    for _round in range(2):
        for position, rank in enumerate(arrival):
            assert not aggregator.complete()
            assert aggregator.heard() == set(arrival[:position])
            assert aggregator.missing() == set(arrival[position:])
            aggregator.add(rank, np.float32(rank).tobytes())
        assert aggregator.complete()
        assert np.frombuffer(aggregator.take(), np.float32) == sum(range(workers))
