"""Errors and speeds of EC-DNN and MA-DNN in real trainings: EC-DNN's tables 2 and 3, on digits.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

from benchmarks.figures import captions, score_curves
from benchmarks.intervals import compared, interval
from benchmarks.replay.summary import Spread
from benchmarks.training import summary
from benchmarks.training.recipe import EnsembleRecipe, Settings
from benchmarks.training.runs import Run
from benchmarks.training.tasks import TASKS

NAME = "ec-dnn-time"
HOSTS = {4: 21.0, 8: 46.0}  # and the seconds that a run takes, about
SEEDS = (1, 2, 3, 4, 5)
MEGABITS = 20
BASELINE = "ma_dnn"
EXAMPLES = 16  # of a worker and mini-batch, as in benchmarks/ec_dnn_accuracy.py
MINI_BATCHES = 1008  # of a worker
# With the paper's speeds on CIFAR-10 and CIFAR-100, of global and local models: by workers.
Speeds = Dict[int, Tuple[Tuple[float, float], Tuple[float, float]]]
METHODS: Dict[str, Tuple[str, Speeds]] = {
    BASELINE: ("MA-DNN", {4: ((1, 1), (0, 0)), 8: ((1, 1), (0, 0))}),
    "e_dnn": ("E-DNN", {4: ((1.58, 1.95), (0, 0)), 8: ((1.92, 1.97), (0, 0))}),
    "ec_dnn_s": ("EC-DNN-S", {4: ((1.92, 2.52), (1.36, 1.42)), 8: ((2.05, 2.48), (1.26, 1.27))}),
    "ec_dnn_r": ("EC-DNN-R", {4: ((2.05, 2.61), (1.42, 1.48)), 8: ((2.11, 2.61), (1.32, 1.36))}),
    "ec_dnn_m": ("EC-DNN-M", {4: ((2.05, 2.63), (1.45, 1.50)), 8: ((2.14, 2.61), (1.38, 1.38))}),
}
# MA-DNN averages every 16 mini-batches, as in most of the paper's tables.
AGGREGATIONS = {BASELINE: 63, "e_dnn": 12, "ec_dnn_s": 4, "ec_dnn_r": 4, "ec_dnn_m": 4}
GLOBAL, LOCAL, SPEED, LOCAL_SPEED = "error, G", "error, L", "speed, G", "speed, L"


def recipe_of(hosts: int) -> EnsembleRecipe:
    """Every worker has all examples, and makes as many mini-batches."""
    batch = EXAMPLES * hosts
    epochs = MINI_BATCHES // -(-TASKS["half_digits"].examples() // batch)
    return EnsembleRecipe(
        "half_digits", "lenet", batch, epochs, 64, "sgd", 0.05, {"momentum": 0.9, "wd": 5e-4},
        aggregations=AGGREGATIONS)


def runs(quick: bool = False) -> List[Run]:
    """All that it takes, seeds and methods in turn."""
    wanted = [
        Run(name, Settings(recipe_of(hosts), hosts, MEGABITS, seed), seconds)
        for seed in SEEDS
        for hosts, seconds in HOSTS.items()
        for name in METHODS
    ]
    return wanted[: len(METHODS)] if quick else wanted


def draw(lines: List[Dict[str, Any]], directory: Path) -> None:
    """Writes ec-dnn-time.svg and ec-dnn-time.md."""
    score_curves.draw_by_hosts(
        lines, HOSTS, list(METHODS), 90, TASKS["half_digits"].measure, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(lines)) + "\n")


def found_of(lines: List[Dict[str, Any]], hosts: int) -> Dict[str, Dict[str, np.ndarray]]:
    """By method and measure, one a seed that all of these methods have; empty where there is none.

    A speed is 0 where the score that MA-DNN's global model ends with is not reached.
    """
    found = {(line["arm"], line["seed"]): line for line in lines if line["hosts"] == hosts}
    names = [name for name in METHODS if any(arm == name for arm, _ in found)]
    seeds = summary.common_seeds(
        [seed for arm, seed in found if arm == name] for name in (BASELINE, *names))
    goals = {seed: found[BASELINE, seed]["curve"][-1][2] for seed in seeds}
    times = {seed: summary.seconds_to(found[BASELINE, seed]["curve"], goals[seed])
             for seed in seeds}
    of: Dict[str, Dict[str, np.ndarray]] = {}
    for name in names if seeds else ():
        curve = {seed: found[name, seed]["curve"] for seed in seeds}
        local = {seed: [(steps, seconds, score) for (steps, seconds, _), score
                        in zip(curve[seed], found[name, seed]["local"])] for seed in seeds}
        of[name] = {
            GLOBAL: np.array([100 - curve[seed][-1][2] for seed in seeds]),
            LOCAL: np.array([100 - local[seed][-1][2] for seed in seeds]),
            SPEED: np.array([times[seed] / summary.seconds_to(curve[seed], goals[seed])
                             for seed in seeds]),
            LOCAL_SPEED: np.array([times[seed] / summary.seconds_to(local[seed], goals[seed])
                                   for seed in seeds]),
        }
    return of


def _text(lines: List[Dict[str, Any]]) -> Iterator[str]:
    recipe = recipe_of(4)
    settings = ", ".join(f"{name} {value:g}" for name, value in recipe.options.items())
    yield "# Errors and speeds of EC-DNN"
    yield ""
    yield (f"Real trainings of LeNet on handwritten digits, on links of {MEGABITS} Mbit/s each "
           f"way. Made by `python -m benchmarks.figures {NAME}`. Every worker has all "
           f"{TASKS[recipe.task].examples()} images to train on, as the paper's tables suggest, "
           f"and makes {MINI_BATCHES} mini-batches of {EXAMPLES}, those of compression included; "
           f"{recipe.optimizer} with a learning rate that falls from {recipe.rate:g} to 0 along a "
           f"cosine, {settings}. `ma_dnn` averages every {_tau(BASELINE)} mini-batches; EC-DNN's "
           f"tau is {_tau('ec_dnn_s')}, its compressions are {recipe.p:g} % of the training each. "
           "None of that was chosen by results.")
    yield ""
    yield ("Speeds are the paper's: how many times as fast as MA-DNN's global model the error is "
           "reached that this ends with, 0 where it is not; medians of the seeds, and their range. "
           "Errors are in per cent of the test images, means of the seeds with 95 % intervals: of "
           "the global model, G, and of the local ones, L, their mean before they are averaged or "
           "compressed for the last time. Beside them stand the paper's speeds, on CIFAR-10 and "
           "CIFAR-100.")
    for hosts in HOSTS:
        found = found_of(lines, hosts)
        if found:
            yield from ["", f"## {hosts} workers", "", *_table(found, hosts), "", *_told(found)]
    yield ""
    yield (f"A speed is as fine as tests are: `ma_dnn` is tested every {_tau(BASELINE) * 4} "
           f"mini-batches, `e_dnn` every {_tau('e_dnn')}, and EC-DNN once a round. Tests are not "
           "in the time, nor are the exchanges that tests of `e_dnn` take before its end, nor "
           "EC-DNN's last compression, before which it is tested; while a test takes place its "
           "next model travels. All workers share the processors "
           "of one machine, so that computing is slow here, the more of them the slower. It does "
           "not show other networks or larger models, whose exchange takes longer; nor, where an "
           "interval has zero in it, that there is no difference. " + captions.began(lines))


def _tau(name: str) -> int:
    return recipe_of(4).tau(name, MINI_BATCHES)


def _table(found: Dict[str, Dict[str, np.ndarray]], hosts: int) -> Iterator[str]:
    yield ("| method | error, G | speed, G | in the paper | seeds that reach it | error, L | "
           "speed, L | in the paper | seeds that reach it |")
    yield "| --- |" + " ---: |" * 8
    for name, measured in found.items():
        title, papers = METHODS[name]
        cells = [title]
        for error, speed, paper in zip((GLOBAL, LOCAL), (SPEED, LOCAL_SPEED), papers[hosts]):
            of_seeds = measured[speed]
            cells += [
                interval(measured[error]), Spread.of(of_seeds.tolist()).cell(2),
                " and ".join(f"{value:g}" for value in paper),
                f"{np.count_nonzero(of_seeds)} of {len(of_seeds)}",
            ]
        yield "| " + " | ".join(cells) + " |"


def _told(found: Dict[str, Dict[str, np.ndarray]]) -> Iterator[str]:
    """What differs from MA-DNN, and, of EC-DNN, from E-DNN."""
    for other in (BASELINE, "e_dnn"):
        for measure in (GLOBAL, SPEED, LOCAL):
            differences = {
                METHODS[name][0]: measured[measure] - found[other][measure]
                for name, measured in found.items()
                if other in found and name not in (BASELINE, other)
            }
            if differences:
                yield compared(f"- {measure}, less {METHODS[other][0]}", differences)
