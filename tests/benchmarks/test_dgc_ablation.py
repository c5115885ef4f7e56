"""benchmarks/dgc_ablation.py: what is changed, and the table."""
from __future__ import annotations

import argparse
import os
from unittest import mock

with mock.patch.dict(os.environ):  # in which it chooses an engine, for its own process
    from dgc_ablation import FLOAT, METHODS, Tables, Training, methods_of, share_of, trainings


def asked(*methods: str) -> argparse.Namespace:
    return argparse.Namespace(epochs=1, workers=2, seeds=[1, 2, 3], methods=methods)


def test_every_change_is_one_of_a_share_that_is_trained_as_well() -> None:
    assert {share_of(method) for method in METHODS} <= set(METHODS)


def test_without_momentum_nothing_is_trained_that_changes_momentum_alone() -> None:
    left_out = set(METHODS) - set(methods_of(asked(*METHODS), 0.0))
    assert left_out == {
        "1 %, decay without momentum", "0.1 %, not masked", "1 %, not masked",
        "10 %, not masked", "100 %, not masked",
    }
    assert methods_of(asked(*METHODS), 0.9) == list(METHODS)


def test_the_table_has_differences_from_floats_and_what_a_change_adds() -> None:
    arguments = asked("1 %", "1 %, not masked")
    points = {FLOAT: 95.0, "1 %": 93.0, "1 %, not masked": 94.5}
    results = {
        training: dict.fromkeys(("training", "final parameters", "moving average"),
                                points[training.method] + training.seed)
        for training in trainings(arguments)}
    assert len(results) == 3 * 3 + 3 * 2
    lines = list(Tables(results, arguments).lines())
    assert "| 1 % | -2.00 ± 0.00 | -2.00 ± 0.00 | 95.00 % |" in lines
    assert ("Less the same share without the change: 1 %, not masked +1.50 ± 0.00. "
            "Above zero by its interval: 1 %, not masked.") in lines


def test_a_change_alters_the_training() -> None:
    found = [Training(method, 2, 0.9, 1, 1).run() for method in ("100 %", "100 %, not masked")]
    assert found[0] != found[1]
