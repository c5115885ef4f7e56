"""Deep gradient compression at a worker (csrc/codecs/dgc.h): what travels, and what stays."""
from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from kvstore_ext import _core

from tests.support.codec_checks import (
    DRAWS,
    assert_same,
    core_draws,
    decoded,
    finite_values,
    gradients,
    kernels,
)
from tests.support.reference.codecs import DGC
from tests.support.reference.formulas import dgc_count, dgc_ratio, largest
from tests.support.reference.rounds import DGCEncoder

KERNELS = _core.kernels()
WORKERS = 4


class Worker:
    """A key's encoder, and what it sends as values."""

    def __init__(self, method: DGC, elements: int, momentum: float = 0.0) -> None:
        self.encoder = _core.KeyEncoder(method.specification, WORKERS, elements)
        self.encoder.set_momentum(momentum)
        self.codec = _core.Codec(method.specification, WORKERS)
        self.elements = elements

    def round(self, gradient: np.ndarray, number: int) -> tuple[np.ndarray, int]:
        """What is sent, and how many elements."""
        scaler = self.encoder.prepare(gradient, number)
        data = self.encoder.encode(0, self.elements, scaler, core_draws(DRAWS))
        blocks = -(-self.elements // 65536)
        counts = struct.unpack(f"<{blocks}I", data[: 4 * blocks])
        return decoded(self.codec, self.elements, data), sum(counts)


def assert_largest(values: np.ndarray, count: int, what: str = "") -> None:
    """That the core, with all kernels, selects what the reference does."""
    expected = largest(values, count)
    for name in KERNELS:
        with kernels(name):
            found = _core.select_largest(values, count).members()
        assert np.array_equal(found, expected), f"{name} {what}"


def small_numbers() -> st.SearchStrategy[np.ndarray]:
    """Arrays with many equals."""
    few = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0**-149])
    return st_numpy.arrays(np.float32, st.integers(0, 700), elements=few)


@pytest.mark.parametrize("elements", [0, 1, 2, 15, 1000, 16_384, 16_385, 300_000])
def test_the_largest_are_exactly_as_many_as_asked_for(elements: int) -> None:
    for kind, values in gradients(elements).items():
        for count in {0, min(elements, 1), elements // 1000, elements // 4, elements}:
            assert_largest(values, count, f"{kind} {count}")


def test_a_sample_that_misleads_does_no_harm() -> None:
    """Large values where no sample looks, or where every one does."""
    elements = 1 << 19
    for step in (2, 31, 32, 33, 63, 64, 128):
        for inside, outside in ((1.0, 2.0), (2.0, 1.0), (0.0, 1.0), (1.0, 0.0)):
            values = np.full(elements, outside, np.float32)
            values[::step] = inside
            for count in (1, 1000, elements // 64, elements // 2):
                assert_largest(values, count, f"{step} {inside} {count}")


@given(finite_values() | small_numbers(), st.integers(0, 700))
def test_the_largest_of_any_values_and_the_first_of_equals(
    values: np.ndarray, count: int
) -> None:
    assert_largest(values, min(count, values.size))


@pytest.mark.parametrize("elements", [1, 2, 3, 999, 1000, 1001, 65_537])
@pytest.mark.parametrize("kind", ["normal", "zeros", "equal"])
def test_each_round_sends_the_share_of_its_stage(elements: int, kind: str) -> None:
    """The paper's own warm-up begins with 25 % and falls exponentially."""
    worker = Worker(DGC(final_ratio=0.001, warmup=8, stages=4), elements)
    gradient = gradients(elements)[kind]
    ratios = [0.25 * (0.001 / 0.25) ** (stage / 4) for stage in (0, 0, 1, 1, 2, 2, 3, 3)]
    for number, ratio in enumerate([*ratios, 0.001, 0.001], 1):
        assert dgc_ratio(number, 0.001, 8, 4) == pytest.approx(ratio)
        _, count = worker.round(gradient, number)
        assert count == max(1, math.ceil(ratio * elements)), number


@pytest.mark.parametrize(("ratio", "elements"), [(0.07, 100), (0.14, 50), (0.28, 25)])
def test_a_share_that_is_a_whole_number_is_sent_exactly(ratio: float, elements: int) -> None:
    assert ratio * elements > round(ratio * elements)  # as float64 has it
    _, count = Worker(DGC(final_ratio=ratio), elements).round(gradients(elements)["normal"], 1)
    assert count == dgc_count(ratio, elements) == round(ratio * elements)


def test_a_last_share_above_that_of_the_first_stage_needs_no_warm_up() -> None:
    _, count = Worker(DGC(final_ratio=0.5, warmup=8, stages=4), 1000).round(
        gradients(1000)["normal"], 1
    )
    assert count == dgc_count(0.5, 1000) == 500


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("clip", [0.0, 0.01])
def test_rounds_are_the_references_with_all_kernels(momentum: float, clip: float) -> None:
    method = DGC(final_ratio=0.01, warmup=4, stages=2, clip=clip, masking=True)
    random = np.random.RandomState(2)
    elements = 20_011
    numbers = DRAWS.numbers(elements)
    workers = {name: Worker(method, elements, momentum) for name in KERNELS}
    expected = DGCEncoder(method, elements, WORKERS, momentum)
    for number in range(1, 9):
        gradient = random.standard_normal(elements).astype(np.float32)
        expected.prepare(gradient, number)
        expected_sent = method.expand(expected.reduce(np.float32(0), numbers))
        for name, worker in workers.items():
            with kernels(name):
                sent, _ = worker.round(gradient, number)
                state = worker.encoder.state()
            assert_same(sent, expected_sent, name)
            assert_same(state[:elements], expected.carried, name)
            if momentum:
                assert_same(state[elements:], expected.velocity, name)


def test_what_is_sent_is_forgotten_with_its_momentum() -> None:
    elements = 1000
    worker = Worker(DGC(final_ratio=0.01, masking=True), elements, momentum=0.9)
    for number in range(1, 6):
        sent, count = worker.round(gradients(elements)["normal"], number)
        assert count == 10
        accumulated, velocity = worker.encoder.state().reshape(2, elements)
        places = np.flatnonzero(sent)
        assert places.size == 10
        assert not accumulated[places].any()
        assert not velocity[places].any()
        assert np.count_nonzero(velocity) == elements - 10


def test_momentum_counts_once() -> None:
    """What was sent and what waits is what momentum SGD has applied.

    Of an element that is sent the momentum begins anew, so that each stretch between two rounds
    that send it is a momentum SGD of its own: sums of 1 + m + m^2 + ..., no element above those of
    an SGD that never stops, and none twice.
    """
    elements, momentum, rounds = 100, 0.5, 12
    worker = Worker(DGC(final_ratio=0.1, masking=True), elements, momentum)
    gradient = np.arange(1, elements + 1, dtype=np.float32) / np.float32(128)
    total = np.zeros(elements, np.float64)
    expected = np.zeros(elements, np.float64)
    velocity = np.zeros(elements, np.float64)
    for number in range(1, rounds + 1):
        sent, _ = worker.round(gradient, number)
        velocity = momentum * velocity + gradient  # momentum SGD, of the elements kept back
        expected += velocity
        total += sent
        velocity[sent != 0] = 0  # momentum factor masking
        waiting = worker.encoder.state()[:elements]
        np.testing.assert_allclose(total + waiting, expected, rtol=1e-5)


def test_without_momentum_masking_what_is_sent_and_waits_is_momentum_sgd() -> None:
    elements, momentum = 100, 0.9
    worker = Worker(DGC(final_ratio=0.1), elements, momentum)
    random = np.random.RandomState(5)
    velocity = np.zeros(elements, np.float64)
    expected, total = np.zeros((2, elements), np.float64)
    for number in range(1, 41):
        gradient = random.standard_normal(elements).astype(np.float32)
        sent, count = worker.round(gradient, number)
        assert count == 10
        velocity = momentum * velocity + gradient
        expected += velocity
        total += sent
        waiting, kept = worker.encoder.state().reshape(2, elements)
        assert not waiting[np.flatnonzero(sent)].any()
        np.testing.assert_allclose(kept, velocity, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(total + waiting, expected, rtol=1e-4, atol=1e-4)


def test_without_masking_to_disturb_it_all_of_the_momentum_arrives() -> None:
    """Nothing is sent of the elements but the first: theirs is plain momentum SGD."""
    elements, momentum = 100, 0.9
    worker = Worker(DGC(final_ratio=0.01, masking=True), elements, momentum)
    gradient = np.full(elements, 0.25, np.float32)
    gradient[0] = 1e6
    velocity, applied = 0.0, 0.0
    for number in range(1, 11):
        sent, _ = worker.round(gradient, number)
        assert np.flatnonzero(sent).tolist() == [0]
        assert sent[0] == 1e6, "its momentum was masked each time"
        velocity = momentum * velocity + 0.25
        applied += velocity
    waiting = worker.encoder.state()[1:elements]
    np.testing.assert_allclose(waiting, applied, rtol=1e-5)


def test_a_gradient_is_scaled_down_to_its_share_of_the_norm() -> None:
    elements = 1000
    gradient = gradients(elements)["normal"]
    norm = float(np.linalg.norm(gradient.astype(np.float64)))
    for factor in (0.5, 2.0):
        worker = Worker(DGC(final_ratio=1.0, clip=factor * norm * 2), elements)
        sent, _ = worker.round(gradient, 1)  # 4 workers: half of the clip for each
        found = float(np.linalg.norm(sent.astype(np.float64)))
        assert found == pytest.approx(min(factor, 1.0) * norm, rel=1e-6)


def test_a_sum_travels_as_it_is_where_it_is_not_sparse() -> None:
    codec = _core.Codec(DGC().specification, WORKERS)
    elements = 1200
    for share, sparse in ((0.1, True), (0.66, True), (0.67, False), (1.0, False)):
        total = np.zeros(elements, np.float32)
        total[: int(share * elements)] = 1.0
        data = codec.encode_sum(total, 0.0, core_draws(DRAWS))
        assert (data is not None) == sparse, share
        if data is not None:
            assert_same(codec.decode_sum(elements, data), total)
