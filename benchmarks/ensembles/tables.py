"""What the trainings found, in Markdown."""
from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np
from ensembles import plan
from ensembles.plan import CASES, CHOSEN, EXPLORED, METHODS, PAPER, Choice, Results
from ensembles.tasks import TASKS
from intervals import interval, shown

CASE_NAMES = {
    "no local training": "case 1: compression alone (tau 1)",
    "no diversity": "case 2: alpha 0",
    "whole": "case 3: all of it",
}
# Whose difference is told, of the global models (G) and of the local ones (L).
PAIRS = (("ec_dnn_s", "e_dnn"), ("e_dnn", "ma_dnn"), ("ec_dnn_s", "ma_dnn"))


class Tables:
    """Of one task."""

    def __init__(self, results: Results, task: str, seeds: Sequence[int]) -> None:
        self._results, self._task, self._seeds = results, task, seeds
        self._choice = Choice(results, seeds)

    def lines(self, kinds: Sequence[str]) -> Iterator[str]:
        """All tables, each with its heading; `kinds` are "shared", "partitioned" or both."""
        known = [kind for kind, _ in TASKS[self._task].kinds]
        for data in (kind for kind in kinds if kind in known):
            whose = "its part of the examples" if data == "partitioned" else "all of them"
            yield from ("", f"### Each worker with {whose} (tables 2 and 3)", "")
            yield from self.errors(data)
            yield from ("", *self.differences(data))
            yield from ("", *self.aggregations(data), *self.lowest(data))
        if "shared" in kinds:
            yield from ("", "### Other tau (figure 5) and parts left out (figure 6)", "",
                        *self.parts())

    def errors(self, data: str) -> Iterator[str]:
        """Global and local models, each with the tau of its smallest validation error."""
        counts = self._counts(data)
        yield "| |" + "".join(f" K = {count}: error | tau |" for count in counts)
        yield "| --- |" + " ---: | ---: |" * len(counts)
        for which in ("global", "local"):
            for method, name in METHODS.items():
                cells = []
                for count in counts:
                    tau = self._choice.tau(self._task, data, method, count)
                    errors = self._choice.errors(self._task, data, method, count, which)
                    cells.append(f"{interval(errors)} | {tau or '-'}")
                yield f"| {name}, {which[0].upper()} | " + " | ".join(cells) + " |"
        alone = [self._results[plan.one(self._task, "shared", "s_dnn", 1, 0, seed)]["global"][1]
                 for seed in self._seeds]
        yield f"| S-DNN | {interval(100 * np.array(alone))} |" + " |" * (2 * len(counts) - 1)

    def differences(self, data: str) -> Iterator[str]:
        """In points, paired by seed."""
        counts = self._counts(data)
        yield "| Points between |" + "".join(f" K = {count} |" for count in counts)
        yield "| --- |" + " ---: |" * len(counts)
        told: Dict[str, np.ndarray] = {}
        for which in ("global", "local"):
            for one, other in PAIRS:
                name = f"{METHODS[one]} less {METHODS[other]}, {which[0].upper()}"
                values = [
                    self._choice.errors(self._task, data, one, count, which)
                    - self._choice.errors(self._task, data, other, count, which)
                    for count in counts]
                told.update((f"{name}, K = {k}", value) for k, value in zip(counts, values))
                yield f"| {name} | " + " | ".join(interval(v, "+") for v in values) + " |"
        yield ""
        yield shown(told)

    def aggregations(self, data: str) -> Iterator[str]:
        """The paper's hypotheses: equation 11 over all measurements, and what compression does."""
        for method in ("ma_dnn", "ec_dnn_s"):
            gains = self.gains(data, method)
            yield (
                f"- {METHODS[method]}'s global model was worse than the mean of the local ones at "
                f"{100 * np.mean(gains < 0):.0f} % of {len(gains)} aggregations, all tau together, "
                f"and {np.mean(gains):+.1f} points better on the average (equation 11).")
        found = self._all(data, "ec_dnn_s")
        pairs = np.array([pair for one in found for pair in one["jensen"]])
        above = int((pairs[:, 0] > pairs[:, 1] + 1e-9).sum())
        yield (
            f"- The ensemble's cross entropy was above the mean of the models' {above} times of "
            f"{len(pairs)} (equation 4 has it 0).")
        for count in self._counts(data):
            rows = [np.mean(np.array(found["curve"])[:, 1:], axis=0)
                    for found in self._choice.found(self._task, data, "ec_dnn_s", count)]
            together, before, after = 100 * np.array(rows).T
            yield (
                f"- K = {count}: local models of EC-DNN-S err {interval(before - together, '+')} "
                "points more than the ensemble before compression, "
                f"{interval(after - together, '+')} after it, means over the aggregations.")

    def lowest(self, data: str) -> Iterator[str]:
        """Where the means of the seeds' curves are lowest: what stopping there comes to.

        The last point of a curve is from before the end only where a compression follows it.
        """
        for count in self._counts(data):
            cells = []
            for method in ("ma_dnn", "e_dnn", "ec_dnn_s"):
                tau = self._choice.tau(self._task, data, method, count)
                found = self._choice.found(self._task, data, method, count, tau)
                end = plan.one(self._task, data, method, count, tau, self._seeds[0]).steps
                rows = np.mean([one["curve"] for one in found], axis=0)
                steps, errors, *_ = rows[rows[:, 0] < end].T
                least = errors.argmin()
                cells.append(
                    f"{METHODS[method]}'s {100 * errors[least]:.2f} after {steps[least]:.0f}")
            yield (
                f"- K = {count}: before the end the global models' mean test errors are lowest, in "
                f"per cent after mini-batches: {', '.join(cells)}.")

    def gains(self, data: str, method: str) -> np.ndarray:
        """Equation 11 in points, of all measurements of all K, tau and seeds."""
        rows = [row for found in self._all(data, method) for row in found["curve"]]
        return 100 * np.array([local - together for _, together, local, _ in rows])

    def parts(self) -> Iterator[str]:
        """EC-DNN-S with four workers that have all examples."""
        yield "| | global | local | worker's examples |"
        yield "| --- | ---: | ---: | ---: |"
        for name, found in self.variants():
            cells = [interval(100 * np.array([one[which][1] for one in found]))
                     for which in ("global", "local")]
            cells.append(interval(100 * np.array([one["training"] for one in found])))
            yield f"| {name} | " + " | ".join(cells) + " |"
        yield ""
        yield ("Test errors in per cent; the last column has those of local models on the examples "
               "that they are trained on, with the labels that these have there.")

    def variants(self) -> List[Tuple[str, List[Dict[str, Any]]]]:
        """Results of figures 5 and 6, one a seed, by name."""
        found = [
            (f"tau {tau}", self._choice.found(self._task, "shared", "ec_dnn_s", 4, tau))
            for tau in plan.taus(self._task, "ec_dnn_s")]
        found.append(("E-DNN", self._choice.found(self._task, "shared", "e_dnn", 4)))
        for which in CASES:
            results = [self._results[plan.case(which, self._task, seed)] for seed in self._seeds]
            found.append((CASE_NAMES[which], results))
        return found

    def _counts(self, data: str) -> List[int]:
        return [count for kind, count in TASKS[self._task].kinds if kind == data]

    def _all(self, data: str, method: str) -> Iterator[Dict[str, Any]]:
        for count in self._counts(data):
            for tau in plan.taus(self._task, method):
                yield from self._choice.found(self._task, data, method, count, tau)


def numbers(results: Results) -> Iterator[str]:
    """Validation errors by which numbers were chosen."""
    yield "| | explored: error of the ensemble | chosen | the paper's, CIFAR |"
    yield "| --- | --- | ---: | ---: |"
    for name, values in EXPLORED.items():
        errors = [100 * np.mean([
            results[training]["global"][0]
            for training in plan.choosing(name, value)]) for value in values]
        cells = ", ".join(f"{value:g}: {error:.2f}" for value, error in zip(values, errors))
        yield f"| {name} | {cells} | {CHOSEN[name]:g} | {PAPER[name]:g} |"
    yield ""
    yield (
        f"Validation errors in per cent, means of {len(plan.CHOOSING_SEEDS)} other seeds, with "
        f"{plan.CHOOSING_WORKERS} workers that have all examples; the other numbers are the "
        "paper's. p is in per cent of the whole training, which "
        f"{plan.CHOOSING_AGGREGATIONS} aggregations divide.")
