"""Pictures and tables of the documents say what the runs found."""
from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest
from matplotlib.axes import Axes

from benchmarks.figures import readme
from tests.support.paths import ROOT

SECONDS = {"p3": 0.5, "terngrad": 0.32, "stock_p3": 0.64, "dist_sync": 0.8, "horovod": 1.0}


def test_the_first_pages_figure_shows_every_arm(tmp_path: Path) -> None:
    lines = [
        {"arm": run.arm, **asdict(run.settings), "seconds": SECONDS[run.arm] * (1 + run.repeat)}
        for run in readme.runs()
    ]
    pictures = []
    for name in ("once", "again"):
        (tmp_path / name).mkdir()
        readme.draw(lines, tmp_path / name)
        pictures.append((tmp_path / name / "readme.svg").read_bytes())
    assert pictures[0] == pictures[1]
    text = (tmp_path / "once" / "readme.md").read_text()
    rows = {line.split("|")[1].strip(): line.split("|")[2].strip()
            for line in text.splitlines() if line.startswith("|")}
    # Of 128 images: in 1, 0.5 and 1.5 s, and so on.
    assert rows["p3"] == "128 (85 to 256)"
    assert rows["terngrad"] == "200 (133 to 400)"
    assert rows["MXNet dist_sync"] == "80 (53 to 160)"
    assert rows["Horovod (Gloo)"] == "64 (43 to 128)"
    assert "medians of 3 runs" in text


def test_a_bound_stands_over_its_own_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[list[float], list[float]]] = []
    monkeypatch.setattr(Axes, "hlines", lambda _axes, _y, left, right, **_: drawn.append(
        (left, right)))
    lines = [{"arm": run.arm, **asdict(run.settings), "seconds": 1.0}
             for run in readme.runs() if run.settings.gigabits != readme.RATES[0]]
    readme.draw(lines, tmp_path)
    assert drawn == [([0.55, 1.55], [1.45, 2.45])]


def test_all_of_it_fits_into_what_the_documents_say() -> None:
    runs = readme.runs()
    assert len(runs) == 5 * 3 * 3
    minutes = sum(run.expected for run in runs) / 60
    said = re.search(r"some (\d+) minutes", (ROOT / "docs" / "figures.md").read_text())
    assert said is not None
    assert minutes < int(said[1])
