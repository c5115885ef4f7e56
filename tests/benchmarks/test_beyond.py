"""benchmarks/beyond.py: what was tried, and the tables; simulations/beyond.py beside formulas."""
from __future__ import annotations

import argparse
import os
from functools import partial
from typing import Any
from unittest import mock

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import compression
from simulations.beyond import BlockMomentum, NearestRounds
from simulations.slim_dp import SlimSimulation

from benchmarks import overlapping
from tests.support.system_packages import need, needs_root
from tests.support.tasks.training import BATCH, make_batch, make_network

with mock.patch.dict(os.environ):  # in which it chooses an engine, for its own process
    from beyond import ARMS, IDEAS, MOMENTS, OVERLAP, Tables, Training, trainings


def asked(*methods: str) -> argparse.Namespace:
    return argparse.Namespace(epochs=3, workers=[2, 4], seeds=[1, 2, 3], methods=methods)


def test_to_the_nearest_what_is_left_is_carried_over() -> None:
    method = compression.parse({"type": "terngrad", "clip_sigma": 0})
    rounds = NearestRounds(method, 2, 0, (3,))
    first = [np.array(each, np.float32) for each in ([8, 3, -1], [-4, 2, 1])]
    np.testing.assert_array_equal(rounds.sum(first, 1), [8, 0, 0])
    # Left: (0, 3, -1) and (-4, 2, 1).
    second = [np.array(each, np.float32) for each in ([1, 2, 0], [0, 0, 0])]
    # Then (1, 5, -1) and (-4, 2, 1), whose scaler is 5.
    np.testing.assert_array_equal(rounds.sum(second, 2), [-5, 5, 0])
    # Then (1, 0, -1) and (1, 2, 1): half a scaler is not more than half of it.
    np.testing.assert_array_equal(rounds.sum([np.zeros(3, np.float32)] * 2, 3), [0, 2, 0])


def test_a_scaler_of_the_nearest_is_clipped() -> None:
    gradient = np.random.RandomState(0).standard_normal(1000).astype(np.float32)
    rounds = NearestRounds(compression.parse({"type": "terngrad"}), 1, 0, (1000,))
    assert np.abs(rounds.sum([gradient], 1)).max() == pytest.approx(2.5 * gradient.std(), rel=1e-5)


def global_models(model: Any, options: dict[str, Any]) -> list[np.ndarray]:
    """Of a network that two workers train for three steps, all of it core, as one vector."""
    optimizer = mx.optimizer.SGD(learning_rate=0.1, rescale_grad=1 / BATCH)
    method = compression.parse({"type": "slim_dp", "alpha": 1, "beta": 1, **options})
    kinds = {} if model is None else {"model": model}
    simulation = SlimSimulation(make_network(), optimizer, 2, method, **kinds)
    found = [np.concatenate([value.ravel() for value in simulation.values()])]
    for step in range(3):
        simulation.step([tuple(part.asnumpy() for part in make_batch(step, rank))
                         for rank in range(2)])
        found.append(np.concatenate([value.ravel() for value in simulation.values()]))
    return found


def test_without_block_momentum_servers_are_those_there_are() -> None:
    for plain, block in zip(global_models(None, {}),
                            global_models(partial(BlockMomentum, eta=0), {})):
        np.testing.assert_array_equal(plain, block)


@pytest.mark.parametrize("nesterov", [False, True])
def test_a_servers_first_steps_with_block_momentum(nesterov: bool) -> None:
    """Where workers begin a step with the global parameters, the first update is that without."""
    plain, block = (
        global_models(model, {"server_lr": 0.5})
        for model in (None, partial(BlockMomentum, eta=0.5, nesterov=nesterov)))
    update = plain[1] - plain[0]
    ahead = 1.5 if nesterov else 1.0
    np.testing.assert_allclose(block[1] - block[0], ahead * update, atol=1e-7)
    assert not np.allclose(block[2], plain[2], atol=1e-5)


def test_every_arm_is_one_of_an_idea_and_compared_with_another() -> None:
    assert {arm.idea for arm in ARMS.values()} == set(IDEAS)
    assert {arm.less for arm in ARMS.values()} - {""} <= set(ARMS)


def test_tables_have_differences_with_the_same_seed_and_seconds() -> None:
    arguments = asked("slim_dp", "values: qsgd", OVERLAP)
    points = {"slim_dp": 90.0, "values: qsgd": 91.5}
    results: dict[Training, Any] = {
        training: {name: points[training.arm] + training.seed for name in MOMENTS}
        for training in trainings(arguments) if training.arm != OVERLAP}
    for training, found in results.items():
        if training.arm != "slim_dp":
            found["bits"] = 8.25
    *_, overlap = trainings(arguments)
    results[overlap] = {"at once": [2.0, 3.0], "one after the other": [3.5, 4.5]}
    lines = list(Tables(results, arguments).lines())
    row = "93.50 ± 2.48 | " * 4
    assert f"| values: qsgd | {row}8.25 |" in lines
    difference = next(line for line in lines if line.startswith("Less `slim_dp`: "))
    assert "values: qsgd, K = 4, at the end +1.50 ± 0.00" in difference
    assert any(line.startswith("Seconds more one after the other: a round +1.50 ± 0.00. Above")
               for line in lines)
    assert not any("block" in line for line in lines)


@pytest.mark.parametrize("arm", ["not clipped, feedback", "values: qsgd, 4 bits", "p 4, eta 0.5"])
def test_an_arm_is_trained_and_measured_twice(arm: str) -> None:
    found = Training(arm, 2, 1, 3).run()
    assert set(found) - {"bits"} == set(MOMENTS)
    assert all(5 < found[name] <= 100 for name in MOMENTS)
    assert ("bits" in found) == arm.startswith("values")


@needs_root
def test_seconds_are_those_of_rounds_but_the_first() -> None:
    need("tc")
    found = overlapping.measure(workers=2, rounds=3)
    assert set(found) == set(overlapping.WAYS)
    for seconds in found.values():
        assert len(seconds) == 2
        assert min(seconds) >= 2 * overlapping.LABELLING  # waits take no less
