"""TernGrad and QSGD are unbiased, with the variance that their papers give.

The random numbers are functions of seeds, so that a test has one outcome for good. Bounds are six
standard deviations of the mean of what is measured: were the numbers drawn afresh, one of these
tests would fail about once in 10 million times.
"""
from __future__ import annotations

import numpy as np
import pytest
from kvstore_ext import _core

from tests.support.reference.codecs import QSGD, Method, TernGrad
from tests.support.reference.formulas import Draws

ELEMENTS = 1 << 17
ROUNDS = 64
SIGMAS = 6


def messages(method: Method, values: np.ndarray, draws: list[Draws]) -> list[np.ndarray]:
    """What the core sends of the same values again and again."""
    codec = _core.Codec(method.specification, 1)
    scaler = codec.scaler(values)
    found = []
    for one in draws:
        stream = _core.Draws(one.seed, one.sender, one.key, one.round)
        sent = np.zeros(values.size, np.float32)
        codec.add_to(sent, codec.encode(values, scaler, stream))
        found.append(sent)
    return found


def rounds(count: int = ROUNDS) -> list[Draws]:
    """Consecutive rounds of a worker."""
    return [Draws(seed=0, sender=0, key=0, round=number) for number in range(1, count + 1)]


def share(probability: float) -> np.ndarray:
    """Values of which TernGrad sends that share: one is the scaler, the others its part."""
    values = np.full(ELEMENTS, -probability, np.float32)
    values[0] = 1.0
    return values


@pytest.mark.parametrize("probability", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_terngrad_is_unbiased(probability: float) -> None:
    """Of 8 million digits with a probability of 0.1 it would see a bias of 1 %."""
    method = TernGrad(clip_sigma=0.0)
    sent = messages(method, share(probability), rounds())
    mean = -np.mean([message[1:].mean(dtype=np.float64) for message in sent])
    deviation = np.sqrt(probability * (1 - probability) / (ROUNDS * (ELEMENTS - 1)))
    assert abs(mean - probability) < SIGMAS * deviation


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("varied", ["sender", "round", "key", "seed"])
def test_terngrads_digits_do_not_depend_on_each_other(varied: str, probability: float) -> None:
    """Neither those of workers, rounds and keys, nor those of neighbours.

    A correlation of 0.0008 between messages would make their sums' variance 5 % larger, which is
    seen; the same digits in all of them would make it 64-fold.
    """
    draws = [Draws(**{**FIXED, varied: number}) for number in range(ROUNDS)]
    sent = messages(TernGrad(clip_sigma=0.0), share(probability), draws)
    digits = -np.array([message[1:] for message in sent])
    variance = probability * (1 - probability)
    # The mean of n squares of about normal numbers has a relative deviation of sqrt(2 / n).
    over_messages = (digits.sum(axis=0, dtype=np.float64) - ROUNDS * probability) ** 2
    bound = SIGMAS * np.sqrt(2 / over_messages.size)
    assert over_messages.mean() / (ROUNDS * variance) == pytest.approx(1, abs=bound)
    for group in (2, 8, 160):
        whole = digits[:, : digits.shape[1] // group * group].astype(np.float64)
        sums = whole.reshape(ROUNDS, -1, group).sum(axis=2) - group * probability
        # Of a few digits the fourth moment is not that of a normal number.
        bound = SIGMAS * (sums**2).std() / np.sqrt(sums.size)
        assert (sums**2).mean() == pytest.approx(group * variance, abs=bound), group


FIXED = {"seed": 1, "sender": 2, "key": 3, "round": 4}


def test_terngrads_variance_is_that_of_equation_3() -> None:
    """E[(s b)^2] = s |g|, whatever g: 1 % more or less digits would be seen."""
    values = np.random.RandomState(0).standard_normal(ELEMENTS).astype(np.float32)
    method = TernGrad()
    scaler = float(method.scaler(values))
    clipped = np.clip(values.astype(np.float64), -scaler, scaler)
    sent = messages(method, values, rounds())
    squares = np.array([(message.astype(np.float64) ** 2).sum() for message in sent]).sum()
    expected = ROUNDS * scaler * np.abs(clipped).sum()
    variance = ROUNDS * (scaler**3 * np.abs(clipped) - scaler**2 * clipped**2).sum()
    assert abs(squares - expected) < SIGMAS * np.sqrt(variance)
    errors = np.mean(sent, axis=0, dtype=np.float64) - clipped
    spreads = np.sqrt((scaler * np.abs(clipped) - clipped**2) / ROUNDS)
    inside = spreads > 0
    # Each element's own mean: that of clipped values alone is exact.
    assert (errors[~inside] == 0).all()
    standard = errors[inside] / spreads[inside]
    assert (standard**2).mean() == pytest.approx(1, abs=SIGMAS * 3 / np.sqrt(standard.size))
    assert abs(standard.mean()) < SIGMAS / np.sqrt(standard.size)


@pytest.mark.parametrize("euclidean", [True, False])
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_qsgd_is_unbiased_with_the_variance_of_stochastic_rounding(
    bits: int, euclidean: bool
) -> None:
    """The values are positive, so that a bias of 0.2 % of a level towards zero would be seen."""
    bucket = 512
    values = np.random.RandomState(bits).exponential(size=ELEMENTS).astype(np.float32)
    exact = values.astype(np.float64)
    table = exact.reshape(-1, bucket)
    norms = np.sqrt((table**2).sum(axis=1)) if euclidean else table.max(axis=1)
    level = np.repeat(norms, bucket) / (2 ** (bits - 1) - 1)
    fraction = exact / level % 1
    variance = level**2 * fraction * (1 - fraction)
    sent = messages(QSGD(bits, bucket, euclidean), values, rounds())
    errors = np.array(sent, np.float64) - exact
    bias = (errors / level).mean()
    spread = np.sqrt((fraction * (1 - fraction)).mean() / errors.size)
    assert abs(bias) < SIGMAS * spread
    assert spread * SIGMAS < 0.002
    squares = (errors**2).sum(axis=0)
    # A square of a rounding error is at most level^2, so that its variance is at most that times
    # its mean.
    bound = SIGMAS * np.sqrt(ROUNDS * (level**2 * variance).sum())
    assert abs(squares.sum() - ROUNDS * variance.sum()) < bound
    if euclidean:  # the paper's lemma 3.1: min(n / s^2, sqrt(n) / s) times the squared norm
        levels = 2 ** (bits - 1) - 1
        most = min(bucket / levels**2, np.sqrt(bucket) / levels) * norms**2
        found = squares.reshape(-1, bucket).sum(axis=1) / ROUNDS
        assert found.mean() < most.mean()


def test_the_servers_numbers_are_not_the_workers() -> None:
    values = share(0.5)
    draws = [Draws(0, sender, 0, 1) for sender in (0, Draws.SERVER)]
    first, second = messages(TernGrad(clip_sigma=0.0), values, draws)
    both = np.count_nonzero((first != 0) & (second != 0)) / ELEMENTS
    assert both == pytest.approx(0.25, abs=SIGMAS * np.sqrt(0.25 * 0.75 / ELEMENTS))
