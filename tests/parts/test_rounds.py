"""Whole rounds of workers and a server: the core's, the reference's, and plain sums."""
from __future__ import annotations

import numpy as np
import pytest
from kvstore_ext import OptionError, _core, compression

from tests.support.codec_checks import METHODS, assert_same, kernels, named
from tests.support.reference.codecs import (
    DGC,
    QSGD,
    Half,
    Method,
    OneBit,
    SignSGD,
    TernGrad,
    TwoBit,
)
from tests.support.reference.formulas import Draws, average
from tests.support.reference.rounds import Simulation

ELEMENTS = 9_001
SLICE = 2_600  # elements, about
KEY = 77
SEED = 12


def gradients_of(workers: int, number: int) -> list[np.ndarray]:
    """One a worker, each of its own size."""
    random = np.random.RandomState(number)
    found = random.standard_normal((workers, ELEMENTS)) * (1 + np.arange(workers))[:, None]
    return list((found * 1e-2).astype(np.float32))


class CoreRounds:
    """Simulation, with the core's codecs, on slices."""

    def __init__(self, method: Method, workers: int, momentum: float = 0.0) -> None:
        self._method = method
        self._codec = _core.Codec(method.specification, workers)
        self._encoders = [
            _core.KeyEncoder(method.specification, workers, ELEMENTS) for _ in range(workers)
        ]
        for encoder in self._encoders:
            encoder.set_momentum(momentum)
        length = max(1, SLICE // self._codec.alignment()) * self._codec.alignment()
        self._slices = [
            (begin, min(length, ELEMENTS - begin)) for begin in range(0, ELEMENTS, length)
        ]
        self._carried = [np.zeros(length, np.float32) for _, length in self._slices]

    def round(self, gradients: list[np.ndarray], number: int) -> np.ndarray:
        scalers = [
            encoder.prepare(gradient, number)
            for encoder, gradient in zip(self._encoders, gradients)
        ]
        shared = max(scalers)
        if self._codec.shares_scaler():
            scalers = [shared] * len(scalers)
        parts = []
        for index, (offset, length) in enumerate(self._slices):
            total = np.zeros(length, np.float32)
            for rank, (encoder, scaler) in enumerate(zip(self._encoders, scalers)):
                draws = _core.Draws(SEED, rank, KEY, number)
                self._codec.add_to(total, encoder.encode(offset, length, scaler, draws))
            parts.append(self._travel_back(index, total, shared, number))
        return np.concatenate(parts)

    def _travel_back(
        self, index: int, total: np.ndarray, scaler: float, number: int
    ) -> np.ndarray:
        if self._codec.error_feedback():
            total += self._carried[index]
        draws = _core.Draws(SEED, Draws.SERVER, KEY, number).from_offset(self._slices[index][0])
        data = self._codec.encode_sum(total, scaler, draws)
        if data is None:
            return total
        received = self._codec.decode_sum(total.size, data)
        if self._codec.error_feedback():
            self._carried[index] = total - received
        return received


@pytest.mark.parametrize("name", _core.kernels())
@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("method", METHODS, ids=named)
def test_rounds_are_the_references(method: Method, workers: int, name: str) -> None:
    momentum = 0.9 if isinstance(method, DGC) else 0.0
    ours = CoreRounds(method, workers, momentum)
    simulation = Simulation(method, workers, ELEMENTS, seed=SEED, key=KEY, momentum=momentum)
    with kernels(name):
        for number in range(1, 7):
            gradients = gradients_of(workers, number)
            expected = simulation.round(gradients, number)
            found = ours.round(gradients, number)
            assert_same(found + np.float32(0), expected + np.float32(0), f"round {number}")


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    "method",
    [
        QSGD(bits=5, feedback=True),
        OneBit(),
        Half(feedback=True),
        TwoBit(0.05),
        DGC(final_ratio=0.05),
    ],
    ids=named,
)
def test_with_error_feedback_all_of_the_gradients_arrives_in_the_end(
    method: Method, workers: int
) -> None:
    """What came in is what arrived, what the workers carry over and what the server carries."""
    simulation = Simulation(method, workers, ELEMENTS)
    came_in, arrived = np.zeros(ELEMENTS), np.zeros(ELEMENTS)
    for number in range(1, 31):
        gradients = gradients_of(workers, number)
        came_in += np.sum(gradients, axis=0, dtype=np.float64)
        arrived += simulation.round(gradients, number)
    waiting = sum(worker.carried.astype(np.float64) for worker in simulation.workers)
    np.testing.assert_allclose(arrived + waiting + simulation.carried, came_in, atol=1e-4)


@pytest.mark.parametrize(
    ("method", "refused"),
    [
        (QSGD(bits=5, feedback=True), False),
        (QSGD(bits=4, bucket=195, feedback=True), False),
        (QSGD(bits=3, bucket=35, feedback=True), False),
        (QSGD(bits=3, euclidean=False, feedback=True), False),
        (QSGD(bits=4, feedback=True), True),
        (QSGD(bits=3, bucket=72, feedback=True), True),
        (QSGD(bits=2, euclidean=False, feedback=True), True),
    ],
    ids=str,
)
def test_where_rounding_leaves_out_more_and_more_the_option_is_refused(
    method: QSGD, refused: bool
) -> None:
    options = {"type": "qsgd", "bits": method.bits, "bucket": method.bucket,
               "norm": "l2" if method.euclidean else "max", "error_feedback": True}
    if refused:
        with pytest.raises(OptionError, match="could grow from round to round; it must be"):
            compression.parse(options)
    else:
        compression.parse(options)
    simulation = Simulation(method, 1, ELEMENTS)
    (worker,) = simulation.workers
    random, left = np.random.default_rng(1), []
    for number in range(1, 61):
        gradients = random.standard_normal((1, ELEMENTS)).astype(np.float32)
        simulation.round(list(gradients), number)
        left.append(np.linalg.norm(worker.carried) / np.linalg.norm(gradients))
    assert (left[-1] > 5) == refused
    assert (left[-1] < 2) != refused


@pytest.mark.parametrize(
    "method",
    [TernGrad(), TernGrad(sharing=False), QSGD(), QSGD(bits=3, euclidean=False)],
    ids=named,
)
def test_the_average_of_many_rounds_is_that_of_the_clipped_gradients(method: Method) -> None:
    """Algorithm 1: line 7 is unbiased; six deviations of a mean of 400 rounds."""
    workers, times = 3, 400
    gradients = gradients_of(workers, 1)
    limits = [method.scaler(gradient) for gradient in gradients]
    if isinstance(method, TernGrad):
        gradients = [np.clip(g, -limit, limit) for g, limit in zip(gradients, limits)]
    expected = np.mean(gradients, axis=0, dtype=np.float64)
    simulation = Simulation(method, workers, ELEMENTS)
    found = np.array(
        [
            average(simulation.round(gradients_of(workers, 1), number), workers)
            for number in range(1, times + 1)
        ],
        np.float64,
    )
    deviation = found.std() / np.sqrt(found.size)
    assert abs((found - expected).mean()) < 6 * deviation + 1e-6
    bound = 6 * found.std(axis=0).max() / np.sqrt(times) + 2e-5
    assert np.abs(found.mean(axis=0) - expected).max() < bound


@pytest.mark.parametrize("name", _core.kernels())
@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7])
def test_signsgd_answers_with_the_majoritys_sign_and_breaks_ties_fairly(
    workers: int, name: str
) -> None:
    rounds = CoreRounds(SignSGD(scale=0.3), workers)
    worth = np.float32(0.3)
    with kernels(name):
        for number in range(1, 5):
            gradients = gradients_of(workers, number)
            found = rounds.round(gradients, number)
            assert set(found.tolist()) == {float(worth), -float(worth)}
            votes = np.sum(np.sign(gradients), axis=0)
            decided = votes != 0
            assert_same(found[decided], worth * np.sign(votes[decided]).astype(np.float32))
            ties = found[~decided]
            assert (ties.size == 0) == (workers % 2 == 1)
            # Six deviations of a sum of as many fair coins.
            assert abs(np.sign(ties).sum()) <= 6 * np.sqrt(ties.size)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_signsgd_moves_what_has_no_gradient_either_way_alike(workers: int) -> None:
    rounds = CoreRounds(SignSGD(), workers)
    zeros = [np.zeros(ELEMENTS, np.float32), np.full(ELEMENTS, -0.0, np.float32)]
    total = np.zeros(ELEMENTS)
    for number in range(1, 101):
        found = rounds.round([zeros[(rank + number) % 2] for rank in range(workers)], number)
        assert set(found.tolist()) == {1.0, -1.0}
        total += found
    assert abs(total.sum()) <= 6 * np.sqrt(100 * ELEMENTS)
    # Each element's own walk, of 100 fair steps, whose square has a mean of 100.
    assert (total**2).mean() == pytest.approx(100, abs=6 * 100 * np.sqrt(2 / ELEMENTS))
