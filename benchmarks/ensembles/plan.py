"""Which trainings there are, and how those that tables tell of are chosen among them."""
from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from ensembles.tasks import TASKS
from ensembles.training import Training

Results = Dict[Training, Dict[str, Any]]

# Some of those that the paper explored, those it chose for CIFAR (table 1), and those chosen here.
EXPLORED: Dict[str, Tuple[float, ...]] = {
    "alpha": (0.2, 0.6, 1.0), "beta": (0.4, 1.0), "p": (5, 10, 20), "mu": (0.3, 0.7),
}
PAPER: Dict[str, float] = {"alpha": 0.6, "beta": 0.4, "p": 10, "mu": 0.7}
CHOSEN: Dict[str, float] = {"alpha": 0.6, "beta": 0.4, "p": 20, "mu": 0.3}
CHOOSING_TASK = "digits"
CHOOSING_SEEDS = (101, 102, 103, 104, 105)  # by which alone these are chosen
CHOOSING_WORKERS = CHOOSING_AGGREGATIONS = 4

METHODS = {
    "ma_dnn": "MA-DNN", "e_dnn": "E-DNN", "ec_dnn_s": "EC-DNN-S", "ec_dnn_r": "EC-DNN-R",
    "ec_dnn_m": "EC-DNN-M",
}
# Aggregations in a training, the last one after its last local step.
AGGREGATIONS: Dict[str, Sequence[int]] = {
    "ma_dnn": (10, 100), "e_dnn": (1,), "ec_dnn_s": (2, 3, 4), "ec_dnn_r": (4,), "ec_dnn_m": (4,),
}
CASES = ("no local training", "no diversity", "whole")  # figure 6


def taus(task: str, method: str) -> List[int]:
    """Those that are tried, in mini-batches; with compression they fill the training."""
    if method in ("e_dnn", "s_dnn"):
        return [0]
    p = CHOSEN["p"] if method.startswith("ec_dnn") else 0
    return [tau_of(task, count, p) for count in AGGREGATIONS[method]]


def tau_of(task: str, aggregations: int, p: float) -> int:
    """What p per cent of the training for each compression leave."""
    steps = TASKS[task].steps
    return steps // aggregations - math.ceil(steps * p / 100)


def one(task: str, data: str, method: str, workers: int, tau: int, seed: int) -> Training:
    """With the numbers chosen, as far as the method has any."""
    numbers = CHOSEN if method.startswith("ec_dnn") else {}
    return Training(task, data, method, workers, tau, seed, **numbers)


def choosing(name: str, value: float) -> List[Training]:
    """By which a number is chosen: it alone differs from the paper's."""
    numbers = {**PAPER, name: value}
    tau = tau_of(CHOOSING_TASK, CHOOSING_AGGREGATIONS, numbers["p"])
    return [
        Training(
            CHOOSING_TASK, "shared", "ec_dnn_s", CHOOSING_WORKERS, tau, seed, **numbers)
        for seed in CHOOSING_SEEDS
    ]


def case(which: str, task: str, seed: int) -> Training:
    """Of figure 6. Without local training one mini-batch is left of it, the least tau."""
    tau = taus(task, "ec_dnn_s")[-1]
    numbers = dict(CHOSEN)
    if which == CASES[1]:
        numbers["alpha"] = 0
    return Training(task, "shared", "ec_dnn_s", 4, 1 if which == CASES[0] else tau, seed, **numbers)


def wanted(
    tasks: Sequence[str], seeds: Sequence[int], data: Sequence[str]
) -> Iterator[Training]:
    """All that the tables tell of, with the examples "shared", "partitioned" or both."""
    for name, values in EXPLORED.items():
        for value in values:
            yield from choosing(name, value)
    for task in tasks:
        for kind, workers in TASKS[task].kinds:
            for seed in seeds if kind in data else ():
                for method in METHODS:
                    for tau in taus(task, method):
                        yield one(task, kind, method, workers, tau, seed)
        for seed in seeds:
            yield one(task, "shared", "s_dnn", 1, 0, seed)
            for which in CASES:
                yield case(which, task, seed)


class Choice:
    """Results of the seeds, with the tau of the smallest validation error of the global model."""

    def __init__(self, results: Results, seeds: Sequence[int]) -> None:
        self._results, self._seeds = results, seeds

    def tau(self, task: str, data: str, method: str, workers: int) -> int:
        """That one; the test part is not looked at."""
        return min(taus(task, method), key=lambda tau: float(np.mean([
            found["global"][0] for found in self.found(task, data, method, workers, tau)])))

    def found(
        self, task: str, data: str, method: str, workers: int, tau: Optional[int] = None
    ) -> List[Dict[str, Any]]:
        """One a seed."""
        tau = self.tau(task, data, method, workers) if tau is None else tau
        return [self._results[one(task, data, method, workers, tau, seed)] for seed in self._seeds]

    def errors(
        self, task: str, data: str, method: str, workers: int, which: str
    ) -> np.ndarray:
        """Per cent of the test part, one a seed; `which` is "local" or "global"."""
        return 100 * np.array([
            found[which][1] for found in self.found(task, data, method, workers)])
