"""benchmarks.prediction: predictions beside what the replay has measured."""
from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from kvstore_ext.predict.network import digest, load
from kvstore_ext.predict.speeds import Speeds
from kvstore_ext.predict.stores import stores

from benchmarks.prediction import __main__ as command
from benchmarks.prediction import arms, further
from benchmarks.prediction.compared import Compared
from benchmarks.prediction.fitted import FITS, was_fitted
from benchmarks.prediction.leads import leads
from benchmarks.prediction.settings import Measured, Setting
from benchmarks.replay.arms import ARMS


def line(arm: str, gigabits: float, seconds: float, earlier: int = 0, **others) -> str:
    values = {
        "key": json.dumps([arm, "", digest(others.get("trace", "alexnet")), 0,
                           ARMS[arm].version - earlier]),
        "arm": arm, "trace": "alexnet", "hosts": 2, "gigabits": gigabits, "dilation": 2.0,
        "by_name": False, "seconds": seconds, **others,
    }  # fmt: skip
    return json.dumps(values)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    compute = load("alexnet").compute
    (tmp_path / "some.jsonl").write_text("\n".join([
        line("terngrad", 100, compute), line("terngrad", 100, compute * 1.02),
        line("signsgd", 100, compute / 2), line("signsgd", 100, 10 * compute, earlier=1),
        line("signsgd", 100, 10 * compute, earlier=1),
        line("p3", 1, 1.0, trace="googlenet", hosts=4),
        line("p3_snapshots", 1, 1.0), json.dumps({"key": "what the replay has not measured"}),
    ]) + "\n")  # fmt: skip
    Speeds().save(tmp_path / "speeds.json")
    return tmp_path


def test_every_setting_stands_beside_its_prediction(results, monkeypatch, capsys):
    # ResNet-50, of which the constants are, takes far longer to predict.
    googlenets = replace(FITS[0], arms=("p3",), settings=(("googlenet", 1.0),))
    monkeypatch.setattr("benchmarks.prediction.fitted.FITS", (googlenets,))
    written = results / "prediction.md"
    monkeypatch.setattr(sys, "argv", [
        "prediction", "--results", str(results), "--output", str(written),
        "--speeds", str(results / "speeds.json"),
    ])  # fmt: skip
    command.main()
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("2 settings: ")
    assert said.endswith("1 times by more than 10 %")
    counted, _, fitted = written.read_text().partition("## Runs that constants were fitted to")
    rows = [row for row in counted.splitlines() if row.startswith("| alexnet")]
    assert len(rows) == 2
    assert "| alexnet, 2 hosts, 100 Gbit/s, signsgd, 2 times slower |" in rows[0]
    assert "| googlenet, 4 hosts, 1 Gbit/s, p3, 2 times slower |" in fitted
    assert "Not predicted: p3_snapshots." in fitted


def test_leads_that_are_predicted_otherwise_are_named():
    def compared(arm: str, gigabits: float, seconds: float, predicted: float) -> Compared:
        setting = Setting("some", arm, "alexnet", 4, gigabits, 2.0, 0, True, False)
        return Compared(Measured(setting, [seconds]), predicted)

    said, _, _, _, *rows = leads([
        compared("p3", 1, 1.0, 1.0), compared("stock_p3", 1, 0.96, 1.03),
        compared("p3", 2, 1.0, 1.0), compared("stock_p3", 2, 1.1, 1.2),
        compared("p3", 4, 1.0, 1.0), compared("dist_sync", 4, 0.999, 1.004),
        compared("horovod", 4, 1.004, 0.98), compared("qsgd", 4, 0.5, 2.0),
    ])  # fmt: skip
    assert said.startswith("`p3` was ahead of a peer, or behind it, by 1 % or more 2 times, and 1 ")
    assert rows == [
        "| alexnet, 4 hosts, 1 Gbit/s, 2 times slower | stock_p3 | -4.0 % | +3.0 % |",
        "| alexnet, 4 hosts, 4 Gbit/s, 2 times slower | horovod | +0.4 % | -2.0 % |",
    ]


def test_runs_that_a_constant_comes_from_do_not_count():
    known = Setting("some", "horovod", "resnet50", 4, 1.0, 2.0, 0, True, False)
    for fit in FITS:
        for arm in fit.arms:
            for trace, rate in fit.settings:
                assert was_fitted(replace(known, arm=arm, trace=trace, gigabits=rate,
                                          slice_elements=fit.slice_elements))  # fmt: skip
    assert was_fitted(known)
    assert not was_fitted(replace(known, hosts=8))
    assert not was_fitted(replace(known, arm="slicing"))
    assert not was_fitted(replace(known, slice_elements=1000))


def test_every_store_that_is_predicted_can_be_measured() -> None:
    wanted = further.runs()
    predicted = set(stores(Speeds())) - {"ring"} | {"horovod", "ec_dnn"}
    assert {run.arm for run in wanted} >= predicted
    assert all(arms.is_known(run.arm) for run in wanted)
    assert len({run.key for run in wanted}) == len(wanted)
