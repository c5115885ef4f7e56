"""benchmarks/terngrad_ablation.py: what is counted, one vector for all layers, and the table."""
from __future__ import annotations

import argparse
import os
from unittest import mock

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import compression
from simulations.gradients import Simulation

from tests.support.results import assert_same_bits
from tests.support.tasks.training import BATCH, make_batch, make_network

with mock.patch.dict(os.environ):  # in which it chooses an engine, for its own process
    from terngrad_ablation import FLOAT, PARTS, Table, Training, WatchedRounds, changes, trainings


def train(method: compression.Compression | None, together: bool) -> dict[str, np.ndarray]:
    """The parameters after three steps of two workers."""
    network = make_network()
    optimizer = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9, rescale_grad=0.5 / BATCH)
    simulation = Simulation(network, optimizer, 2, method, together=together)
    assert not together or len(simulation.keys) == 1
    for step in range(3):
        batches = [make_batch(step, rank) for rank in range(2)]
        simulation.step([(images.asnumpy(), labels.asnumpy()) for images, labels in batches])
    return {name: p.data().asnumpy() for name, p in network.collect_params().items()}


def test_all_layers_as_one_key_train_as_layers_do() -> None:
    apart, together = (train(None, together) for together in (False, True))
    assert_same_bits({str(i): value for i, value in enumerate(together.values())},
                     {str(i): value for i, value in enumerate(apart.values())})


def test_one_scaler_for_the_model_is_the_largest_gradient_of_all() -> None:
    """After a step without momentum every parameter has moved by a whole multiple of it."""
    network = make_network()
    before = [p.data().asnumpy() for p in network.collect_params().values()]
    method = compression.parse({"type": "terngrad", "clip_sigma": 0})
    simulation = Simulation(
        network, mx.optimizer.SGD(learning_rate=1.0), 1, method, together=True)
    images, labels = make_batch(0, 0)
    simulation.step([(images.asnumpy(), labels.asnumpy())])
    moves = [np.abs(p.data().asnumpy() - b)
             for p, b in zip(network.collect_params().values(), before)]
    scaler = max(move.max() for move in moves)
    for move in moves:
        assert (np.isclose(move, 0, atol=scaler / 1000) | np.isclose(move, scaler, rtol=0.01)).all()


def test_excluded_parameters_travel_as_they_are() -> None:
    """After one step; from then on gradients depend on what the others have become."""
    moves = []
    method = compression.parse({"type": "terngrad"})
    for options in ({}, {"method": method}, {"method": method, "excluded": True}):
        network = make_network()
        parameters = list(network.collect_params().values())
        if "excluded" in options:
            options["excluded"] = parameters[-2:]
        simulation = Simulation(network, mx.optimizer.SGD(learning_rate=0.1), 1, **options)
        images, labels = make_batch(0, 0)
        simulation.step([(images.asnumpy(), labels.asnumpy())])
        moves.append([parameter.data().asnumpy() for parameter in parameters])
    floats, ternary, excluded = moves
    for number, expected in enumerate([*ternary[:-2], *floats[-2:]]):
        np.testing.assert_array_equal(excluded[number], expected)
    assert (ternary[-1] != floats[-1]).any()


def test_clipping_and_zeros_are_counted() -> None:
    method = compression.parse({"type": "terngrad", "clip_sigma": 1})
    rounds = WatchedRounds(method, 2, 0, (30, 40), 0.0)
    random = np.random.RandomState(0)
    gradients = [random.standard_normal((30, 40)).astype(np.float32) for _ in range(2)]
    rounds.sum(gradients, 1)
    clipped = [np.clip(g, -g.std(), g.std()) for g in gradients]
    seen = rounds.take()
    assert seen[0] == 2400
    # A normal number clipped at its deviation is 0 with a probability of 0.369 (equation 3).
    assert seen[1] / 2400 == pytest.approx(0.369, abs=0.04)
    np.testing.assert_allclose(seen[2:], [
        sum((g**2).sum() for g in gradients), sum((c**2).sum() for c in clipped),
        sum((g * c).sum() for g, c in zip(gradients, clipped))], rtol=1e-4)
    assert not rounds.take().any()


def test_changes_are_those_of_the_whole_gradient() -> None:
    """Of two layers: (3, 4) clipped to (3, 3), and (0, 0)."""
    part = np.array([[10, 5, 25.0, 18.0, 21.0], [10, 10, 0, 0, 0]])
    found = changes([part] * PARTS)
    assert found["zeros 1"] == found[f"zeros {PARTS}"] == 75
    assert found["length"] == pytest.approx(100 * (1 - np.sqrt(18) / 5))
    angle = np.degrees(np.arctan2(4, 3) - np.arctan2(3, 3))
    assert found["direction"] == pytest.approx(angle)


def test_the_table_has_differences_from_floats_with_the_same_seed() -> None:
    arguments = argparse.Namespace(epochs=1, workers=2, seeds=[1, 2, 3], methods=["c = 1"])
    zeros = {f"zeros {part}": 50.0 + part for part in range(1, PARTS + 1)}
    results = {
        training: {"accuracy": 90.0 + training.seed} if training.method == FLOAT else
        {"accuracy": 92.0 + training.seed, "length": 1.25, "direction": 2.5, **zeros}
        for training in trainings(arguments)}
    assert len(results) == 6
    lines = list(Table(results, arguments).lines())
    assert ("| c = 1 | +2.00 ± 0.00 | -1.25 % | 2.50° | 51.0, 52.0, 53.0, 54.0, 55.0 % |") in lines
    assert "Less floats: Above zero by its interval: c = 1." in lines


def test_a_training_is_watched_to_its_end() -> None:
    found = Training("one scaler for the model", 2, 1, PARTS).run()
    assert set(found) == {"accuracy", "length", "direction",
                          *(f"zeros {part}" for part in range(1, PARTS + 1))}
    assert 10 < found["accuracy"] <= 100
    assert 0 < found["length"] < 100
    assert all(30 < found[f"zeros {part}"] < 100 for part in range(1, PARTS + 1))
