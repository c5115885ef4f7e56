"""Pictures and tables of the documents say what the runs found."""
from __future__ import annotations

import json
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

from benchmarks.figures import (
    compression,
    document,
    growth,
    p3_accuracy,
    p3_bandwidth,
    p3_bound,
    p3_hosts,
    p3_slices,
    p3_traffic,
    readme,
    slim_communication,
    terngrad_scaling,
)
from benchmarks.figures.__main__ import FIGURES, make
from benchmarks.growth.run import GrowthRun
from benchmarks.replay.bound import least_seconds
from benchmarks.replay.measurement import Run
from benchmarks.replay.trace import load
from benchmarks.training.runs import Run as Training
from tests.benchmarks.synthetic import Result, grown, lines_of, rows, trained
from tests.support.paths import ROOT

FIGURES_DOCUMENT = ROOT / "docs" / "figures.md"
SECONDS = {"p3": 0.5, "terngrad": 0.32, "stock_p3": 0.64, "dist_sync": 0.8, "horovod": 1.0}


def of_bound(run: Run) -> float:
    settings = run.settings
    return least_seconds(load(settings.trace), settings.hosts, settings.gigabits)


def made(runs: list[Any]) -> list[Result]:
    if not runs:
        return []
    if isinstance(runs[0], GrowthRun):
        return grown(runs)
    if isinstance(runs[0], Training):
        return trained(runs, lambda _: 0.05, lambda steps: 90 + steps / 100)
    return lines_of(runs, of_bound)


def test_the_command_names_every_figure() -> None:
    """In an interpreter that has imported nothing of it before."""
    command = [sys.executable, "-m", "benchmarks.figures", "--list"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_results_make_the_same_picture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terngrad_scaling, "GPUS", (1, 4))  # of one machine: no events take seconds
    lines = made(FIGURES[name].runs(quick=True))
    pictures = []
    for directory in (tmp_path / "once", tmp_path / "again"):
        directory.mkdir()
        FIGURES[name].draw(lines, directory)
        assert {path.name for path in directory.iterdir()} == {f"{name}.svg", f"{name}.md"}
        pictures.append((directory / f"{name}.svg").read_bytes())
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("name", [name for name in FIGURES if FIGURES[name].runs(quick=True)])
def test_all_of_it_fits_into_what_the_documents_say(name: str) -> None:
    runs = FIGURES[name].runs()
    assert len({run.key for run in runs}) == len(runs)
    assert [run.repeat for run in runs] == sorted(run.repeat for run in runs)
    section = re.search(rf"make figure-{name}\n.*?(?=^## |\Z)", FIGURES_DOCUMENT.read_text(),
                        re.DOTALL | re.MULTILINE)
    assert section is not None
    said = re.search(r"some (\d+) minutes", section[0].replace("\n", " "))
    assert said is not None
    minutes = sum(run.expected for run in runs) / 60
    assert 0.8 * int(said[1]) < minutes < int(said[1])
    quick = sum(run.expected for run in FIGURES[name].runs(quick=True)) / 60
    assert quick < 20


def test_a_figure_that_is_there_is_shown() -> None:
    text = FIGURES_DOCUMENT.read_text()
    for name in FIGURES:
        assert f"<!-- figure: {name} -->\n" in text
        if (ROOT / "docs" / "figures" / f"{name}.svg").exists():
            assert f"](figures/{name}.svg)" in text
            assert f"](figures/{name}.md)" in text


def test_a_figure_is_put_into_its_place() -> None:
    text = "before\n\n<!-- figure: one -->\n\nafter\n\n<!-- figure: one-more -->\n"
    once = document.shown(text, "one", "What it is")
    assert once.startswith("before\n\n<!-- figure: one -->\n\n![What it is](figures/one.svg)\n\n"
                           "[Its numbers](figures/one.md)\n\nafter\n\n<!-- figure: one-more")
    assert document.shown(once, "one", "What it is") == once
    twice = once.replace("](figures/one.md)\n", "](figures/one.md)\n\n![Old](figures/one.svg)\n\n"
                         "[Its numbers](figures/one.md)\n")
    assert document.shown(twice, "one", "What it is now") == once.replace("it is", "it is now")


def test_the_first_page_has_a_figure_with_its_numbers() -> None:
    text = "before\n\n<!-- figure: one -->\nOld.\n<!-- end of the figure -->\n\nafter\n"
    once = document.shown_first(text, "one", "What it is", "Numbers.\n")
    assert once == ("before\n\n<!-- figure: one -->\n\n![What it is](docs/figures/one.svg)\n\n"
                    "Numbers.\n<!-- end of the figure -->\n\nafter\n")
    assert document.shown_first(once, "one", "What it is", "Numbers.\n") == once
    assert document.shown_first(text, "two", "What it is", "Numbers.\n") == text


def test_what_a_data_set_has_given_is_shown_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.figures.__main__.DIRECTORY", tmp_path)
    monkeypatch.setattr(document, "show", lambda *_: None)
    runs = [*p3_accuracy.DIGITS.runs(""), *p3_accuracy.CIFAR.runs("/where/it/was")]
    (tmp_path / "p3-accuracy.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in made(runs)))
    without = Namespace(quick=False, dry_run=False, draw_only=True, data_dir=None)
    assert make("p3-accuracy", without, latest=0) == []
    text = (tmp_path / "p3-accuracy.md").read_text()
    assert "## LeNet, handwritten digits\n" in text
    assert "## ResNet-20, CIFAR-10\n" in text


def test_the_first_page_has_the_numbers_that_were_measured() -> None:
    numbers = ROOT / "docs" / "figures" / "readme.md"
    assert not numbers.exists() or numbers.read_text() in (ROOT / "README.md").read_text()


def test_the_first_pages_figure_shows_every_arm(tmp_path: Path) -> None:
    readme.draw(lines_of(readme.runs(), lambda run: SECONDS[run.arm] * (1 + run.repeat)), tmp_path)
    text = (tmp_path / "readme.md").read_text()
    # Of 128 images: in 1, 0.5 and 1.5 s, and so on.
    for arm, cell in [("p3", "128 (85 to 256)"), ("terngrad", "200 (133 to 400)"),
                      ("MXNet dist_sync", "80 (53 to 160)"), ("Horovod (Gloo)", "64 (43 to 128)")]:
        (row,) = rows(text, arm)
        assert row[1] == cell
    assert "medians of 3 runs" in text


def test_a_bound_stands_over_its_own_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[list[float], list[float]]] = []
    monkeypatch.setattr(Axes, "hlines", lambda _axes, _y, left, right, **_: drawn.append(
        (left, right)))
    runs = [run for run in readme.runs() if run.settings.gigabits != readme.RATES[0]]
    readme.draw(lines_of(runs, lambda _run: 1.0), tmp_path)
    assert drawn == [([0.55, 1.55], [1.45, 2.45])]


def test_gains_stand_beside_the_papers_and_the_bounds(tmp_path: Path) -> None:
    # VGG-19's stores are equals but at one rate, and what is ahead of p3 is so at one rate alone.
    slower = {"p3": 1.1, "slicing": 1.3, "stock_p3": 1.25, "dist_sync": 1.54, "horovod": 1.6}

    def seconds(run: Run) -> float:
        if run.settings.trace == "sockeye" and run.settings.gigabits == 2.0:
            return of_bound(run) * (1.0 if run.arm == "horovod" else 1.005)
        if run.settings.gigabits == 30.0 and run.arm == "stock_p3":
            return of_bound(run) * 1.18
        return of_bound(run) * (1.2 if run.settings.trace == "vgg19" else slower[run.arm])

    p3_bandwidth.draw(lines_of(p3_bandwidth.runs(), seconds), tmp_path)
    text = (tmp_path / "p3-bandwidth.md").read_text()
    (gain, *_) = rows(text, "ResNet-50")
    assert gain[1:6] == ["4 Gbit/s", "26 %", "40 %", "54 %", "yes"]
    assert rows(text, "VGG-19, slicing alone")[0][2:6] == [
        "49 %", "0 %", "20 %", "no: the bound is nearer"]
    assert rows(text, "InceptionV3")[0][1].startswith("its best, ")
    # One point at which Horovod is half a per cent ahead.
    assert rows(text, "Sockeye")[1:] == [
        ["Sockeye", "2 Gbit/s", "Horovod (Gloo)", "0.5 %", "yes", "100 %"]]
    # Where computing alone takes as long.
    assert rows(text, "VGG-19")[1:] == [
        ["VGG-19", "30 Gbit/s", "MXNet P3", "1.7 %", "no", "83 %"]]
    assert len(rows(text, "p3")) == len(rows(text, "Horovod (Gloo)")) == 4


def test_gains_of_more_hosts(tmp_path: Path) -> None:
    def seconds(run: Run) -> float:
        slower = 1.5 if run.arm == "dist_sync" else 1.2
        return of_bound(run) * slower * (1 if run.settings.hosts == 2 else 1.25)

    p3_hosts.draw(lines_of(p3_hosts.runs(), seconds), tmp_path)
    text = (tmp_path / "p3-hosts.md").read_text()
    gains = rows(text, "VGG-19")
    assert [row[1] for row in gains] == ["2 hosts", "4 hosts", "8 hosts"]
    assert gains[2][2:] == ["61 %", "25 %", "88 %", "no", "3.20"]
    assert rows(text, "ResNet-50")[2][2:6] == ["0 %", "25 %", "88 %", "yes"]


def test_shares_of_the_bound_stand_where_communication_shows(tmp_path: Path) -> None:
    runs = p3_bound.runs()
    slower = {(run.settings.trace, run.settings.hosts): run.settings.dilation for run in runs
              if run.settings.gigabits == 1}
    assert slower["googlenet", 16] == 2 * slower["resnet50", 16]
    assert slower["googlenet", 8] == slower["resnet50", 8]
    lines = lines_of(runs, lambda run: of_bound(run) * (1.02 if run.settings.hosts < 8 else 1.05))
    p3_bound.draw([{**line, "busy": 0.41} for line in lines], tmp_path)
    text = (tmp_path / "p3-bound.md").read_text()
    few = len({run.settings for run in runs if run.settings.hosts < 8})
    assert f"At {few} of {len(runs) // 3} points it is 0.97 or more." in text
    assert [row[1] for row in rows(text, "VGG-19")] == ["2", "4", "8"]
    near, far = "0.980 (41 %)", "0.952 (41 %)"
    assert rows(text, "ResNet-50") == [
        ["ResNet-50", "2", near, near, "", "", ""], ["ResNet-50", "4", near, near, near, "", ""],
        ["ResNet-50", "8", far, far, far, "", ""], ["ResNet-50", "16", far, far, far, "", ""],
    ]
    assert "have no run" not in text
    p3_bound.draw([{**line, "busy": 0.41} for line in lines if line["hosts"] < 8], tmp_path)
    points = len(runs) // 3
    lack = f" Of all {points} points {points - few} have no run."
    assert f"At {few} of {few} points it is 0.97 or more.{lack}\n" in (
        tmp_path / "p3-bound.md").read_text()
    p3_bound.draw([{**line, "commit": str(line["repeat"])} for line in lines], tmp_path)
    assert "Medians of 3 runs, made at commits 0, 1, 2; everything, links and waits, was" in (
        tmp_path / "p3-bound.md").read_text()


def test_the_best_slice_stands_beside_the_default(tmp_path: Path) -> None:
    def seconds(run: Run) -> float:
        best = 20_000 if run.settings.trace == "vgg19" else p3_slices.DEFAULT
        return of_bound(run) * (1.0 if run.settings.slice_elements == best else 1.06)

    p3_slices.draw(lines_of(p3_slices.runs(), seconds), tmp_path)
    text = (tmp_path / "p3-slices.md").read_text()
    assert rows(text, "VGG-19")[1] == ["VGG-19", "20,000", "+6.0 %", "no"]
    assert rows(text, "ResNet-50")[1] == ["ResNet-50", "50,000", "+0.0 %", "yes"]
    assert len(rows(text, "network")[0]) == 3 + len(p3_slices.SLICES)


def test_the_use_of_a_link(tmp_path: Path) -> None:
    runs = p3_traffic.runs()
    assert {run.settings.sample for run in runs} == {0.01}
    p3_traffic.draw(lines_of(runs, lambda _run: 0.25), tmp_path)
    text = (tmp_path / "p3-traffic.md").read_text()
    same = " (50 to 50) %"
    assert rows(text, "Sockeye")[0] == [
        "Sockeye", "4 Gbit/s", "MXNet dist_sync", f"50{same}", f"50{same}", "40 (40 to 40) %",
        "67 (67 to 67) %", "250 (250 to 250)"]


def test_what_a_compression_needs_and_what_hides(tmp_path: Path) -> None:
    compute = load(compression.NETWORK).compute

    def seconds(run: Run) -> float:
        if not run.settings.computes:
            return 2 * compute
        enough = 2.0 if run.arm == "terngrad" else 4.0
        # Of communication alone half hides where it shows, and all where it does not.
        return compute * (1.0 if run.settings.gigabits >= enough else 2.0)

    compression.draw(lines_of(compression.runs(), seconds), tmp_path)
    text = (tmp_path / "compression.md").read_text()
    assert rows(text, "terngrad")[1][-1] == "2 Gbit/s"
    assert rows(text, "qsgd")[1] == ["qsgd", "0.0", "100 %", "4 Gbit/s"]
    hides = {row[1]: row[2:] for row in rows(text, "slim_dp")[2:]}
    twice, once = f"{2 * compute:.3f} s", f"{compute:.3f} s"
    assert hides["1 Gbit/s"] == [twice, twice, "50 %", "50 %"]
    assert hides["10 Gbit/s"] == [twice, once, "100 %", "50 %"]
    assert "No peer that was measured is ahead of `2bit` at any point." in text


def test_saved_communication_stands_beside_the_papers(tmp_path: Path) -> None:
    # Alone, without computing; the median of 0.9, 1 and 1.1 times that.
    shares = {"p3": 1.0, "qsgd": 0.4, "slim_dp": 0.31, "slim_dp_20": 0.23, "slim_dp_keys": 0.5,
              "slim_dp_20_keys": 0.3}
    runs = slim_communication.runs()
    assert {run.settings.computes for run in runs} == {False}
    lines = lines_of(runs, lambda run: shares[run.arm] * (0.9 + 0.1 * run.repeat))
    slim_communication.draw(lines, tmp_path)
    text = (tmp_path / "slim-communication.md").read_text()
    google, vgg = rows(text, "GoogLeNet"), rows(text, "VGG-16")
    assert len(google) == len(vgg) == 8
    assert google[0][1:6] == ["4", "Plump-DP", "p3", "0", "1.000 (0.900 to 1.100)"]
    slim = [row for row in (*google, *vgg) if row[2] == "Slim-DP"]
    assert [row[6:9] for row in slim] == [
        ["69.0 %", "55 %", "68 %: yes"], ["69.0 %", "56 %", "68 %: yes"],
        ["77.0 %", "71 %", "78 %: no"], ["77.0 %", "70 %", "78 %: no"]]
    assert [row[6:9] for row in (*google, *vgg) if row[2] == "Slim-DP, indices travel"] == [
        ["50.0 %", "", "68 %: no"], ["50.0 %", "", "68 %: no"],
        ["70.0 %", "", "78 %: no"], ["70.0 %", "", "78 %: no"]]
    # The paper's table 2: 1.09, 1.13, 1.32 and 1.41, of hours that it did not round.
    assert [row[10] for row in slim] == ["1.09", "1.12", "1.32", "1.41"]
    assert "hosts share 2 processors, each 40 to 206.2 times as fast as this machine's" in text


def test_lines_lead_to_many_hosts(tmp_path: Path) -> None:
    growth.draw(grown(growth.runs()), tmp_path)
    text = (tmp_path / "growth.md").read_text()
    # 20 and 3 a host, whatever is measured.
    (row, *_) = rows(text, "descriptors of a server")
    assert row[1:] == ["26", "32", "44", "68", "116", "3.00", "0%", "1556"]
    (row, *_) = rows(text, "memory of a worker, MB")
    assert row[1:] == ["26", "32", "44", "68", "116", "3.00", "0%", "1556"]
    assert "Medians of 3 runs, with 2, 4, 8, 16, 32 hosts" in text
    assert "The start is from the first worker's beginning" in text


def test_the_papers_speedups_stand_beside_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terngrad_scaling, "GPUS", (1, 8))
    terngrad_scaling.draw([], tmp_path)
    found = rows((tmp_path / "terngrad-scaling.md").read_text(), "AlexNet")
    assert [row[5] for row in found] == ["", "3.04 times", "", ""]
    # By events: on Ethernet much is gained, and nothing where all is hidden, or within a machine.
    assert [float(row[9]) for row in found] == [1, pytest.approx(12.65), 1, 1]
