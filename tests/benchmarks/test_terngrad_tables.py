"""benchmarks/terngrad_tables.py: its arms, dropout, and the tables."""
from __future__ import annotations

import argparse
import os
from unittest import mock

import mxnet as mx
import numpy as np
from mxnet import autograd

with mock.patch.dict(os.environ):  # in which it chooses an engine, for its own process
    import accuracy
    from terngrad_tables import ARMS, EVALUATED, WORKERS, Tables, Training, add_dropout, trainings


def test_an_arm_is_compared_with_those_of_its_table() -> None:
    assert {arm.table for arm in ARMS.values()} == set(WORKERS)
    for arm in ARMS.values():
        assert all(ARMS[other].table == arm.table for other in arm.less)


def test_dropout_leaves_out_hidden_units_while_the_network_trains() -> None:
    """Of an output layer that sums them up."""
    network = accuracy.make_network(accuracy.split(0), 0)
    images = mx.nd.ones((1, 1, 8, 8))
    output = add_dropout(network, 0.5)
    output.weight.set_data(mx.nd.ones((10, 128)))
    before = network(images).asnumpy()
    with autograd.record():
        sums = [network(images)[0, 0].asscalar() for _ in range(20)]
    assert len(set(sums)) > 10
    np.testing.assert_array_equal(network(images).asnumpy(), before)


def test_tables_have_differences_with_the_same_seed() -> None:
    arguments = argparse.Namespace(
        epochs=1, seeds=[1, 2, 3], methods=["Adam, floats", "Adam, TernGrad"])
    results = {
        training: dict.fromkeys(
            ("training", *EVALUATED), 90.0 + training.seed + ("TernGrad" in training.arm))
        for training in trainings(arguments)}
    assert len(results) == 2 * 2 * 3
    lines = list(Tables(results, arguments).lines())
    assert "## Adam (table 1)" in lines
    assert "| Adam, TernGrad | 93.00 ± 2.48 | 93.00 | 93.00 ± 2.48 | 93.00 |" in lines
    assert ("Less `Adam, floats`: Adam, TernGrad, N = 2 +1.00 ± 0.00; Adam, TernGrad, N = 16 "
            "+1.00 ± 0.00. Above zero by its interval: Adam, TernGrad, N = 2; Adam, TernGrad, "
            "N = 16.") in lines


def test_arms_train_differently() -> None:
    one, other = (
        Training(name, 2, 1, 1).run()
        for name in ("Adam, TernGrad", "TernGrad, not clipped, dropout 0.2"))
    assert set(one) == {"training", *EVALUATED}
    assert all(0 < percentage <= 100 for percentage in one.values())
    assert one != other
