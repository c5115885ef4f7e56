"""Lines through measurements, and TernGrad's performance model, by numbers worked out by hand."""
from __future__ import annotations

import pytest

from benchmarks.growth.fits import line
from benchmarks.simulations.terngrad_model import (
    Machines,
    bits_of_sum,
    communication,
    implied_compute,
    weak_scaling,
)

# 4 GPUs a machine; 10 and 5 GB/s inside of it, 1 GB/s and a millisecond between two.
CLUSTER = Machines("made up", 4, 10e9, 5e9, 1e9, 1e-3)


def test_a_line_goes_through_its_points() -> None:
    fit = line([2, 4, 8], [11, 17, 29])
    assert (fit.base, fit.slope) == pytest.approx((5, 3))
    assert fit.off == pytest.approx(0)
    assert fit.at(100) == pytest.approx(305)


def test_errors_of_a_line_are_shares() -> None:
    # ((c - 10) / 10)^2 + ((c - 20) / 20)^2 is least where c = 12.
    fit = line([1, 2, 1, 2], [10, 20, 20, 10])
    assert (fit.base, fit.slope) == pytest.approx((12, 0))
    assert fit.off == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("workers", "seconds"),
    [
        (1, 0.2),  # 1 GB to the processor
        (2, 0.1 + 0.2),  # and once between GPUs
        (4, 2 * 0.1 + 0.2),
        (8, 2 * 0.1 + 0.2 + 1.001),  # and once between machines
        (32, 2 * 0.1 + 0.2 + 3 * 1.001),
    ],
)
def test_communication(workers: int, seconds: float) -> None:
    assert communication(CLUSTER, workers, 1e9) == pytest.approx(seconds)
    assert weak_scaling(CLUSTER, workers, 1e9, 32, 0.5) == pytest.approx(
        32 * workers / (0.5 + seconds)
    )


def test_machines_must_be_full() -> None:
    with pytest.raises(ValueError, match="6 GPUs do not fill machines of 4"):
        communication(CLUSTER, 6, 1e9)


def test_what_a_speedup_says_of_computing() -> None:
    # (1 + 2) / (1 + 0.5) = 2
    assert implied_compute(2, 2, 0.5) == pytest.approx(1)


@pytest.mark.parametrize(("workers", "bits"), [(1, 2), (2, 3), (4, 4), (8, 5), (512, 11)])
def test_bits_of_a_sum(workers: int, bits: int) -> None:
    assert bits_of_sum(workers) == bits
