"""The tables of benchmarks/ec_dnn_accuracy.py say what the trainings found."""
from __future__ import annotations

import argparse
from typing import Any

import pytest
from ec_dnn_accuracy import ENSEMBLES, PERIODS, STEPS, Tables, Training

SEEDS = [0, 1, 2]


def found(last: float, curve: list[float], models: int, forwards: int) -> dict[str, Any]:
    """Of a training with a measurement each 10 steps."""
    return {
        "global": last,
        "local": 0.5,
        "curve": [[i + 1, error, 0.5] for i, error in enumerate(curve)],
        "rounds": [[10 * (i + 1), forwards, models] for i in range(len(curve))],
        "model_bytes": 125_000,  # a millisecond at 1 Gbit/s
        "step_seconds": 0.01,
        "forward_seconds": [0.001],
        "jensen": [[0.5, 0.6]],
    }


@pytest.fixture(scope="module")
def lines() -> list[str]:
    results = {Training("s_dnn", 1, 4 * STEPS, seed, "shared"): found(0.3, [0.3], 0, 0)
               for seed in SEEDS}
    for seed in SEEDS:
        more = 0.01 * seed
        for period in PERIODS:
            worse = 0.1 * (period != PERIODS[0])
            # To 0.2 in 30 steps and 3 models: 303 ms.
            results[Training("ma_dnn", 2, period, seed, "partitioned")] = found(
                0.19 + worse + more, [0.4 + more, 0.3 + more, 0.19 + worse + more], 1, 0)
            for method in ENSEMBLES:
                # In 20 steps, 2 * 20 forward passes and 2 * 2 models: 244 ms.
                results[Training(method, 2, period, seed, "partitioned")] = found(
                    0.09 + worse + 2 * more, [0.4, 0.1 + worse, 0.09 + worse + 2 * more], 2, 20)
        results[Training("e_dnn", 2, STEPS, seed, "partitioned")] = found(
            0.25 + more, [0.5, 0.5, 0.25 + more], 1, 0)
    arguments = argparse.Namespace(seeds=SEEDS, workers=[2], data=["partitioned"], gigabits=1.0)
    return list(Tables(results, arguments).lines())


def row(lines: list[str], name: str) -> list[str]:
    line, = [line for line in lines if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_errors_speeds_and_taus_are_those_of_the_best_period(lines: list[str]) -> None:
    tau = str(Training("ma_dnn", 2, PERIODS[0], 0, "partitioned").tau)
    assert row(lines, "MA-DNN, G") == ["20.00 ± 2.48", "1.00", tau]
    error, speed, tau = row(lines, "EC-DNN-R, G")
    assert error == "11.00 ± 4.97"
    assert float(speed) == pytest.approx(303 / 244, abs=0.005)
    assert int(tau) == Training("ec_dnn_r", 2, PERIODS[0], 0, "partitioned").tau < PERIODS[0]
    assert row(lines, "E-DNN, G") == ["26.00 ± 2.48", "0.00", "-"]
    assert row(lines, "EC-DNN-S, L")[:2] == ["50.00 ± 0.00", "0.00"]
    assert row(lines, "S-DNN")[0] == "30.00 ± 0.00"


def test_differences_are_paired(lines: list[str]) -> None:
    assert row(lines, "EC-DNN-S less MA-DNN") == ["-9.00 ± 2.48"]
    assert row(lines, "EC-DNN-M less E-DNN") == ["-15.00 ± 2.48"]
