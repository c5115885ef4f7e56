"""Accuracy and speed of Plump-, Quant- and Slim-DP: Slim-DP's table 2 and figure 4b, on digits.
"""
from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

from benchmarks.figures import captions, score_curves
from benchmarks.intervals import compared, interval
from benchmarks.replay.summary import Spread
from benchmarks.training import summary
from benchmarks.training.arms import ARMS
from benchmarks.training.recipe import Recipe, Settings
from benchmarks.training.runs import Run
from benchmarks.training.tasks import TASKS

NAME = "slim-time"
HOSTS = {4: 14.0, 8: 24.0}  # and the seconds that a run takes, about
SEEDS = (1, 2, 3, 4, 5)
MEGABITS = 200  # as in time_to_accuracy.py
PLUMP, SLIM = "p3", "slim_dp"
SCORE, SPEED_D, SPEED_A = "score", "Speed_d", "Speed_a"
# With the paper's gains over Plump-DP, with GoogLeNet: by workers, points, Speed_d and Speed_a.
METHODS: Dict[str, Tuple[str, Dict[int, Tuple[float, float, float]]]] = {
    PLUMP: ("Plump-DP", {}),
    "qsgd": ("Quant-DP", {4: (-0.04, 1.08, 1.08), 8: (0.05, 1.11, 1.16)}),
    SLIM: ("Slim-DP (0.3, 0.15)", {4: (0.23, 1.09, 1.16), 8: (0.23, 1.13, 1.23)}),
    "slim_dp_20": ("Slim-DP (0.2, 0.1)", {}),
    "slim_dp_50": ("Slim-DP (0.5, 0.25)", {}),
}
RECIPE = Recipe("digits", "lenet", 64, 15, 6, "sgd", 0.05, {"momentum": 0.9, "wd": 1e-4})


def runs(quick: bool = False) -> List[Run]:
    """All that it takes, seeds and arms in turn."""
    wanted = [
        Run(name, Settings(RECIPE, hosts, MEGABITS, seed), seconds)
        for seed in SEEDS
        for hosts, seconds in HOSTS.items()
        for name in METHODS
    ]
    return [run.short() for run in wanted[: len(METHODS)]] if quick else wanted


def draw(lines: List[Dict[str, Any]], directory: Path) -> None:
    """Writes slim-time.svg and slim-time.md."""
    score_curves.draw_by_hosts(
        lines, HOSTS, list(METHODS), 80, TASKS[RECIPE.task].measure, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(lines)) + "\n")


def gains_of(lines: List[Dict[str, Any]], hosts: int) -> Dict[str, Dict[str, np.ndarray]]:
    """By arm and measure, one a seed that all of these arms have; empty where there is none."""
    found = {(line["arm"], line["seed"]): line["curve"] for line in lines if line["hosts"] == hosts}
    names = [name for name in METHODS if any(arm == name for arm, _ in found)]
    seeds = summary.common_seeds(
        [seed for arm, seed in found if arm == name] for name in (PLUMP, *names))
    pairs = {name: [(found[name, seed], found[PLUMP, seed]) for seed in seeds] for name in names}
    return {name: {
        SCORE: np.array([own[-1][2] for own, _ in pairs[name]]),
        SPEED_D: np.array([
            summary.step_seconds(plump) / summary.step_seconds(own) for own, plump in pairs[name]]),
        SPEED_A: np.array([
            summary.seconds_to(plump, plump[-1][2]) / summary.seconds_to(own, plump[-1][2])
            for own, plump in pairs[name]]),
    } for name in names if seeds}


def _text(lines: List[Dict[str, Any]]) -> Iterator[str]:
    settings = ", ".join(f"{name} {value:g}" for name, value in RECIPE.options.items())
    yield "# Accuracy and speed with Slim-DP"
    yield ""
    yield (f"Real trainings of LeNet on handwritten digits, on links of {MEGABITS} Mbit/s each "
           f"way. Made by `python -m benchmarks.figures {NAME}`. {RECIPE.batch} examples a step, "
           f"of all workers; {RECIPE.epochs} epochs; {RECIPE.optimizer} with a learning rate that "
           f"falls from {RECIPE.rate:g} to 0 along a cosine, {settings}; a new core every three "
           "epochs. Plump-DP's servers update parameters, as Trainer has them do; the other "
           "methods' workers do, each its own. All workers share the processors of one machine: "
           "computing is slow here, and what a method computes is in its time.")
    yield ""
    yield ("Speed_d is how many times as fast as with Plump-DP a step is, Speed_a how many times "
           "as fast the score is reached that Plump-DP ends with, 0 where it is not: medians of "
           "the seeds, and their range. Scores are means, with 95 % intervals. Beside them stand "
           "the paper's gains, with GoogLeNet.")
    for hosts in HOSTS:
        gains = gains_of(lines, hosts)
        if gains:
            yield from ["", f"## {hosts} workers", "", *_table(gains, hosts), "", *_told(gains)]
    yield ""
    yield ("It does not show other networks, or hosts of their own, on which computing is faster; "
           "nor, where an interval has zero in it, that there is no difference. All seeds test "
           "with the same images: benchmarks/slim_accuracy.md has five splits. "
           + captions.began(lines))


def _table(gains: Dict[str, Dict[str, np.ndarray]], hosts: int) -> Iterator[str]:
    yield ("| method | store | " + TASKS[RECIPE.task].measure + " | less Plump-DP | in the paper | "
           "Speed_d | in the paper | Speed_a | in the paper | seeds that reach it |")
    yield "| --- | --- |" + " ---: |" * 8
    for name, found in gains.items():
        title, papers = METHODS[name]
        own = ["", "", ""]
        if name != PLUMP:
            own = [interval(found[SCORE] - gains[PLUMP][SCORE], "+"), *(
                Spread.of(found[speed].tolist()).cell(2) for speed in (SPEED_D, SPEED_A))]
        points, step, accuracy = (
            [f"{papers[hosts][0]:+.2f}", *(f"{speed:.2f}" for speed in papers[hosts][1:])]
            if hosts in papers else ["", "", ""])
        yield "| " + " | ".join([
            title, ARMS[name].label, interval(found[SCORE]), own[0], points, own[1], step, own[2],
            accuracy, f"{np.count_nonzero(found[SPEED_A])} of {len(found[SPEED_A])}",
        ]) + " |"


def _told(gains: Dict[str, Dict[str, np.ndarray]]) -> Iterator[str]:
    """What differs from Plump-DP, and, of Slim-DP, from the shares that the paper prefers."""
    for other, measure in product((PLUMP, SLIM), (SCORE, SPEED_D, SPEED_A)):
        differences = {
            METHODS[name][0]: found[measure] - gains[other][measure]
            for name, found in gains.items()
            if other in gains and name != other and (other == PLUMP or name.startswith(SLIM))
        }
        if differences:
            yield compared(f"- {measure}, less {METHODS[other][0]}", differences)
