"""Where an iteration's time goes: on the wire, waiting for computing, and unused."""
from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest

from benchmarks.figures.wire_time import WireTime, table
from benchmarks.replay.bound import least_seconds
from benchmarks.replay.trace import load

RESNET50 = load("resnet50")
# What each of 4 hosts sends at least: three quarters of all, twice.
BYTES = 6 * sum(layer.elements for layer in RESNET50.layers)


def line(gigabits: float, seconds: float, sent: float, arm: str = "p3") -> dict[str, Any]:
    return {"trace": "resnet50", "hosts": 4, "gigabits": gigabits, "arm": arm, "seconds": seconds,
            "sent": sent}


def test_all_parts_are_the_iteration() -> None:
    least = least_seconds(RESNET50, 4, 1.0)
    found = WireTime.of([line(1.0, least + 0.1, 1.02 * BYTES)])
    assert found is not None
    frames = 1514 / 1448
    assert found.gradients == pytest.approx(BYTES * 8 * frames / 1e9)
    assert found.gradients + found.nothing == pytest.approx(least)
    assert found.more == pytest.approx(0.02 * found.gradients)
    assert found.unused == pytest.approx(0.1 - found.more)


def test_of_several_runs_it_is_the_one_between() -> None:
    runs = [line(1.0, 2.0, BYTES), line(1.0, 9.0, 3 * BYTES), line(1.0, 1.0, 2 * BYTES)]
    found = WireTime.of(runs)
    assert found is not None
    assert found.all == 2.0
    assert found.more == pytest.approx(found.gradients)


def test_where_computing_takes_longer_there_is_nothing_to_say() -> None:
    assert WireTime.of([line(100.0, 1.0, BYTES)]) is None


def test_a_table_has_the_points_of_p3() -> None:
    lines = [line(rate, 2.0 / rate, BYTES, arm) for rate in (100.0, 2.0, 1.0)
             for arm in ("p3", "stock_p3")]
    lines.append({**line(1.0, 0.0, 0.0), "failed": "it stood still"})
    del lines[-1]["seconds"]
    *_, one, two = table([(Namespace(title="ResNet-50"), lines)])
    assert one.startswith("| ResNet-50, 4 hosts | 1 | 2000.0 | 64.2 % |")
    assert two.startswith("| ResNet-50, 4 hosts | 2 | 1000.0 | 64.2 % |")
    for row in (one, two):
        shares = [float(cell.strip(" %")) for cell in row.strip("| ").split("|")[3:]]
        assert sum(shares) == pytest.approx(100, abs=0.3)
