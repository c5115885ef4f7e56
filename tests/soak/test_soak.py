"""A soak of a few steps: that it runs, finds what is wrong, and goes on where it stopped."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.soak import __main__ as soak
from tests.soak import legs as plan
from tests.soak import running
from tests.soak.legs import Leg, legs
from tests.soak.looking import Growth, Look, growth


@pytest.fixture(scope="module")
def few() -> list[Leg]:
    return [Leg("p3", 6, 1), Leg("slim_dp", 6, 1), Leg("p3", 3, 1, lossy=True)]


def test_a_million_rounds_take_every_store_in_turn() -> None:
    wanted = legs(1_000_000)
    assert sum(leg.rounds for leg in wanted) >= 1_000_000
    assert {leg.store for leg in wanted if not leg.lossy} == set(plan.STORES)
    assert [leg.store for leg in wanted if leg.lossy] == list(plan.LOSSY_STORES)


def test_legs_run_once_and_go_on_where_they_stopped(
    few: list[Leg], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = tmp_path / "legs.jsonl"
    monkeypatch.setattr(soak, "legs", lambda rounds: few)
    for limit in ("_LIVE", "_PIECES"):  # all of it is what is allocated once
        monkeypatch.setattr(running, limit, 1e6)
    arguments = ["soak", "--workers", "3", "--results", str(results)]
    monkeypatch.setattr(sys, "argv", [*arguments, "--most", "2"])
    assert soak.main() == 0, capsys.readouterr().out
    assert len(results.read_text().splitlines()) == 2
    assert "soak: 3 legs to go" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", arguments)
    assert soak.main() == 0, capsys.readouterr().out
    output = capsys.readouterr().out
    assert "soak: 1 legs to go" in output
    assert output.count("the same sums, as many descriptors and threads") == 3
    monkeypatch.setattr(soak, "run", lambda *_: pytest.fail("it has run already"))
    assert soak.main() == 0
    assert "to go" not in capsys.readouterr().out
    assert len(results.read_text().splitlines()) == 3
    monkeypatch.setattr(sys, "argv", [*arguments, "--only", "slim_dp"])
    assert soak.main() == 0
    assert capsys.readouterr().out.startswith("slim_dp: ")
    monkeypatch.setattr(sys, "argv", [*arguments, "--only", "p3, lossy"])
    assert soak.main() == 0
    assert "the same sums" in capsys.readouterr().out
    legs_run = [json.loads(line) for line in results.read_text().splitlines()]
    lossy = next(each for each in legs_run if each["leg"] == "p3, lossy")
    lossy["checksums"] = dict.fromkeys(lossy["checksums"], "1")
    results.write_text("".join(json.dumps(each) + "\n" for each in legs_run))
    assert soak.main() == 1, "although the other leg does not run"
    results.write_text(json.dumps(lossy) + "\n")
    soak.main()
    assert "were not compared with those of 'p3', which has not run" in capsys.readouterr().out
    results.write_text("".join(json.dumps(each) + "\n" for each in legs_run))
    monkeypatch.setattr(sys, "argv", [*arguments, "--only", "slimdp"])
    with pytest.raises(SystemExit):
        soak.main()
    assert "no leg slimdp; there are 'p3', 'slim_dp', 'p3, lossy'" in capsys.readouterr().err


def looks_of(heap: list[int], threads: int = 9) -> list[Look]:
    """At a process with such a heap after each 100 rounds, which has that many threads at last."""
    counts = [9] * (len(heap) - 1) + [threads]
    return [
        {"round": 100 * i, "heap": live, "memory": 10 * live, "descriptors": 20, "threads": count}
        for i, (live, count) in enumerate(zip(heap, counts))
    ]


def grown(settled: list[int]) -> Growth:
    """In the second half of looks whose first has what is allocated once."""
    first = [settled[0] * i // len(settled) for i in range(len(settled))]
    return growth(looks_of(first + settled), "heap")


def test_growth_is_that_of_the_second_half() -> None:
    steady = grown([200_000, 200_040, 199_960, 200_000, 200_010, 199_990])
    assert -1 < steady.least <= 0 <= steady.most < 1
    leak = grown([200_000 + 3000 * i + 50 * (i % 3) for i in range(12)])
    assert 29 < leak.least <= leak.bytes <= leak.most < 31


def test_a_single_step_is_no_growth_and_one_again_and_again_is() -> None:
    assert grown([200_000] * 12 + [232_768] * 12).least == 0
    assert grown([200_000 + 32_768 * (i // 6) for i in range(24)]).least > 0


def test_faults_are_named() -> None:
    leak = {"server 1": looks_of([30 * 100 * number for number in range(8)], threads=11)}
    result = {"leg": "p3", "rounds": 800, "looks": leak}
    assert running.faults({**result, "checksums": {}}, {}) == [
        "workers have got different sums",
        "server 1 has 11 threads, 9 before",
        "server 1's heap grows by +30.00 (+30.00 to +30.00) bytes a round",
        "server 1's memory grows by +300.00 (+300.00 to +300.00) bytes a round",
    ]
    whole = {**result, "looks": {}, "checksums": {"10": "5", "20": "6"}}
    lossy = {**whole, "leg": "p3, lossy", "checksums": {"10": "7"}}
    assert running.faults(whole, {"p3": whole}) == []
    assert running.faults(lossy, {"p3": whole}) == ["sums differ from those where nothing was lost"]
