"""A soak of a few steps: that it runs, finds what is wrong, and goes on where it stopped."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.soak import __main__ as soak
from tests.soak import legs as plan
from tests.soak import running
from tests.soak.legs import Leg, legs


@pytest.fixture(scope="module")
def few() -> list[Leg]:
    return [Leg("p3", 6, 1), Leg("slim_dp", 6, 1), Leg("p3", 3, 1, lossy=True)]


def test_a_million_rounds_take_every_store_in_turn() -> None:
    wanted = legs(1_000_000)
    assert sum(leg.rounds for leg in wanted) >= 1_000_000
    assert {leg.store for leg in wanted if not leg.lossy} == set(plan.STORES)
    assert [leg.store for leg in wanted if leg.lossy] == list(plan.LOSSY_STORES)


def test_legs_run_once_and_nothing_grows(
    few: list[Leg], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = tmp_path / "legs.jsonl"
    monkeypatch.setattr(soak, "legs", lambda rounds: few)
    monkeypatch.setattr(running, "_SLACK", 16 << 20)  # all of it is what is allocated once
    monkeypatch.setattr(sys, "argv", ["soak", "--workers", "3", "--results", str(results)])
    assert soak.main() == 0, capsys.readouterr().out
    output = capsys.readouterr().out
    assert "soak: 3 legs to go" in output
    assert output.count("the same sums, as many descriptors and threads") == 3
    monkeypatch.setattr(soak, "run", lambda *_: pytest.fail("it has run already"))
    assert soak.main() == 0
    assert "to go" not in capsys.readouterr().out
    assert len(results.read_text().splitlines()) == 3


def test_faults_are_named() -> None:
    process = {"heap": 30.0, "memory": 300.0, "descriptors": [20, 21], "threads": [9, 9]}
    result = {"leg": "p3", "rounds": 100_000, "processes": {"server 1": process}}
    assert running.faults({**result, "checksums": {}}, {}) == [
        "workers have got different sums",
        "server 1 has 21 descriptors, 20 before",
        "server 1's live heap grows by 30 bytes a round",
        "server 1 grows by 300 bytes a round",
    ]
    whole = {**result, "processes": {}, "checksums": {"10": "5", "20": "6"}}
    lossy = {**whole, "leg": "p3, lossy", "checksums": {"10": "7"}}
    assert running.faults(whole, {"p3": whole}) == []
    assert running.faults(lossy, {"p3": whole}) == ["sums differ from those where nothing was lost"]
