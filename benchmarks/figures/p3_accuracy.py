"""Accuracy of five settings with p3 and with dgc: P3's figure 11, on other images."""
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from benchmarks import datasets
from benchmarks.figures import curves, style
from benchmarks.intervals import compared, interval
from benchmarks.training import summary
from benchmarks.training.arms import ARMS
from benchmarks.training.recipe import Recipe, Settings
from benchmarks.training.runs import Run
from benchmarks.training.tasks import TASKS

NAME = "p3-accuracy"
READS_FILES = True  # runs takes the directory of data sets, and shown has those of all
HOSTS = 4
NAMES = ("p3", "dgc", "dgc_thousandth")
# Learning rate, momentum, examples a step: the paper does not name its five.
SETTINGS = ((0.05, 0.9, 64), (0.02, 0.9, 64), (0.1, 0.9, 64), (0.05, 0.9, 128), (0.1, 0.0, 64))
_WEIGHT_DECAY = 1e-4
_PAPER = 0.4  # points that DGC loses there


@dataclass(frozen=True)
class Panel:
    """A data set.

    Parameters
    ----------
    bottom : float
        The least percentage that is drawn.
    expected : float
        Seconds that a run takes, about.
    """

    title: str
    task: str
    model: str
    epochs: int
    seeds: Tuple[int, ...]
    bottom: float
    expected: float

    def runs(self, data_dir: str) -> List[Run]:
        """All of them."""
        return [
            Run(name, Settings(self._recipe(setting, data_dir), HOSTS, 0, seed), self.expected)
            for seed in self.seeds for setting in SETTINGS for name in NAMES
        ]

    def _recipe(self, setting: Tuple[float, float, int], data_dir: str) -> Recipe:
        rate, momentum, batch = setting
        steps = -(-TASKS[self.task].examples() // batch)
        return Recipe(self.task, self.model, batch, self.epochs, steps, "sgd", rate,
                      {"momentum": momentum, "wd": _WEIGHT_DECAY}, data_dir)


DIGITS = Panel("LeNet, handwritten digits", "half_digits", "lenet", 30, (1, 2, 3, 4, 5), 85, 20)
CIFAR = Panel("ResNet-20, CIFAR-10", "cifar10", "cifar_resnet20_v1", 10, (1,), 0, 3000)


def runs(quick: bool = False, data_dir: Optional[str] = None) -> List[Run]:
    """All that it takes; with a directory that has CIFAR-10, of these images too."""
    found = DIGITS.runs("")
    if quick:
        return [_short(run) for run in found[: len(NAMES)]]
    if data_dir:
        datasets.cifar10_files(data_dir)  # says what is missing
        found += CIFAR.runs(str(Path(data_dir).resolve()))
    return sorted(found, key=lambda run: run.repeat)


def shown(quick: bool = False) -> List[Run]:
    """All whose results are shown, those on images that are not at hand now too."""
    return runs(quick) if quick else [*DIGITS.runs(""), *CIFAR.runs("")]


def _short(run: Run) -> Run:
    recipe = replace(run.settings.recipe, epochs=2)
    return replace(run, settings=replace(run.settings, recipe=recipe), expected=10)


def draw(lines: List[Dict[str, Any]], directory: Path) -> None:
    """Writes p3-accuracy.svg and p3-accuracy.md."""
    tables = [Table(panel, lines) for panel in (DIGITS, CIFAR)]
    tables = [table for table in tables if table.found]
    drawn, axes = style.figure(7.2, 3.8, 1, len(tables), squeeze=False)
    for place, table in zip(axes.flat, tables):
        table.draw(place)
    curves.legend(drawn, axes.flat)
    style.save(drawn, directory / f"{NAME}.svg")
    text = _introduction()
    for table in tables:
        text += ["", f"## {table.panel.title}", "", *table.lines()]
    (directory / f"{NAME}.md").write_text("\n".join(text) + "\n")


Setting = Tuple[float, float, int]
Scores = List[float]  # after each epoch, the mean of the seeds


class Table:
    """What a data set's runs have found, by arm and setting."""

    def __init__(self, panel: Panel, lines: Sequence[Dict[str, Any]]) -> None:
        self.panel = panel
        runs: Dict[Tuple[str, Setting], Dict[int, Scores]] = {}
        for line in lines:
            recipe = line["recipe"]
            if recipe["task"] == panel.task:
                setting = recipe["rate"], recipe["options"]["momentum"], recipe["batch"]
                scores = [score for _, _, score in line["curve"]]
                runs.setdefault((line["arm"], setting), {})[line["seed"]] = scores
        seeds = summary.common_seeds(runs.values())
        self.found: Dict[Tuple[str, Setting], Scores] = {
            key: [mean(scores) for scores in zip(*(of_seed[seed] for seed in seeds))]
            for key, of_seed in runs.items()
            if seeds
        }
        self._last_of_seeds = {
            key: np.array([of_seed[seed][-1] for seed in seeds]) for key, of_seed in runs.items()
        }
        self._seeds = len(seeds)

    def draw(self, axes: Any) -> None:
        """Bands from the worst to the best of the settings, over the epochs."""
        for name in NAMES:
            own = [scores for (arm, _), scores in self.found.items() if arm == name]
            if not own:
                continue
            worst, best = ([which(scores) for scores in zip(*own)] for which in (min, max))
            bars = style.bars(name)
            how = {key: bars[key] for key in ("color", "hatch", "edgecolor")}
            axes.fill_between(
                range(1, len(worst) + 1), worst, best, alpha=0.45, label=ARMS[name].label, **how
            )
        axes.set_title(self.panel.title, loc="left", fontsize="medium")
        axes.set_xlabel("epochs")
        axes.set_ylabel(TASKS[self.panel.task].measure)
        axes.set_xlim(0, None)
        axes.set_ylim(self.panel.bottom, 100)
        axes.grid()

    def lines(self) -> Iterator[str]:
        """The last epoch's accuracies, and what dgc loses."""
        others = NAMES[1:]
        yield ("| learning rate | momentum | examples a step | "
               + " | ".join(ARMS[name].label for name in NAMES) + " |")
        yield "| ---: | ---: | ---: |" + " ---: |" * len(NAMES)
        for setting in SETTINGS:
            cells = [f"{value:g}" for value in setting]
            cells += [_cell(self._last(name, setting)) for name in NAMES]
            yield "| " + " | ".join(cells) + " |"
        yield ""
        yield (f"After {self.panel.epochs} epochs: {TASKS[self.panel.task].measure}, means of "
               f"{self._seeds} seeds. The learning rate falls to 0 along a cosine, and the weight "
               f"decay is {_WEIGHT_DECAY:g}.")
        for name in others:
            lost = self._lost(name)
            if lost:
                together = interval(np.mean(list(lost.values()), axis=0))
                yield (f"{ARMS[name].label} loses {together} points to p3, the mean of "
                       f"{len(lost)} settings (the paper: {_PAPER:g}). "
                       + compared("By setting", lost))

    def _last(self, name: str, setting: Setting) -> Optional[float]:
        scores = self.found.get((name, setting))
        return scores[-1] if scores else None

    def _lost(self, name: str) -> Dict[str, np.ndarray]:
        """Points by setting, of each seed."""
        last = self._last_of_seeds
        return {
            f"rate {rate:g}, momentum {momentum:g}, {batch} a step:":
                last["p3", (rate, momentum, batch)] - last[name, (rate, momentum, batch)]
            for rate, momentum, batch in SETTINGS
            if {("p3", (rate, momentum, batch)), (name, (rate, momentum, batch))} <= last.keys()
        }


def _cell(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.2f}"


def _introduction() -> List[str]:
    return [
        "# Accuracy with P3 and with DGC",
        "",
        f"P3's figure 11, with what trains here in the place of its ResNet-110: real jobs of "
        f"{HOSTS} workers and as many servers, with five settings of the learning rate, the "
        "momentum and the batch. Made by `python -m benchmarks.figures p3-accuracy`. `dgc` begins "
        "with a warm-up of four epochs, as in its paper, and keeps the momentum of what it sends, "
        "unlike there (benchmarks/dgc_ablation.md).",
    ]
