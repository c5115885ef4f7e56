#!/usr/bin/env python3
r"""EC-DNN beside averages of models and a final ensemble: the paper's tables 2 and 3, in Markdown.

    OMP_NUM_THREADS=1 python benchmarks/ec_dnn_accuracy.py --results ec_dnn.jsonl \
        > benchmarks/ec_dnn_accuracy.md

After Sun and Liu, Neurocomputing 2018, section 6, with scikit-learn's digits for CIFAR and a small
Network in Network. Workers are simulated (simulations/ec_dnn.py). The command can be ended and
called again at any time, and several can share the work (trainings.py).
"""
from __future__ import annotations

import argparse
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

if __name__ == "__main__":  # then everything a worker computes, its own thread does
    os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from datasets import digits
from gluon_models import get_model
from kvstore_ext import ec_dnn
from simulations.ec_dnn import SimulatedStore, run
from trainings import command, complete, interval

TRAIN_SIZE = 896  # half of the images
BATCH = 32  # of a worker
STEPS = 132  # mini-batches of a worker, those of compression included
PERIODS = (11, 44)  # mini-batches from one aggregation to the next
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.05, 0.9, 5e-4
EVALUATE_EVERY = 22  # mini-batches
ENSEMBLES = ("ec_dnn_s", "ec_dnn_r", "ec_dnn_m")
NAMES = {
    "ma_dnn": "MA-DNN", "e_dnn": "E-DNN", "ec_dnn_s": "EC-DNN-S", "ec_dnn_r": "EC-DNN-R",
    "ec_dnn_m": "EC-DNN-M",
}


@dataclass(frozen=True)
class Training:
    """The split, the first parameters and the order of the examples follow from the seed.

    data: "partitioned", each worker with 1/K of the examples, or "shared", each with all of them.
    period: of PERIODS; e_dnn, which aggregates at the end, and s_dnn have the number of steps.
    """

    method: str
    workers: int
    period: int
    seed: int
    data: str

    def run(self) -> Dict[str, Any]:
        """Trains; returns errors, the curve over the training, and what steps cost."""
        data = digits(self.seed, self.seed, TRAIN_SIZE)
        train = _all(data.train(1, TRAIN_SIZE, 0, 1))
        mean = train[0].mean(axis=0)  # per pixel, as in the paper
        test = _all(data.validation(BATCH))
        arrays = (train[0] - mean, train[1]), (test[0] - mean, test[1])
        return run(self.workers, lambda store: self._work(store, *arrays))[0]

    @property
    def steps(self) -> int:
        """Of a worker; a single one sees the examples as often as four that share them."""
        return STEPS * (4 if self.method == "s_dnn" else 1)

    @property
    def tau(self) -> int:
        """Local steps in a period."""
        if self.method not in ENSEMBLES:
            return EVALUATE_EVERY if self.method in ("e_dnn", "s_dnn") else self.period
        return next(
            tau for tau in range(self.period, 0, -1)
            if tau + ec_dnn.Method(self.method, tau=tau).compression_steps <= self.period
        )

    def _work(
        self, store: SimulatedStore, train: Tuple[Any, Any], test: Tuple[Any, Any]
    ) -> Dict[str, Any]:
        mx.random.seed(1000 * self.seed + store.rank)
        network = get_model("nin_digits", classes=10)
        network.initialize(mx.init.MSRAPrelu("in", 0))
        network.hybridize(static_alloc=True, static_shape=True)
        part = slice(store.rank, None, store.num_workers)
        own = train if self.data == "shared" else (train[0][part], train[1][part])
        method = ec_dnn.Method(self.method, tau=self.tau)
        trainer = ec_dnn.Trainer(
            network, own, make_optimizer(self.steps), method=method, store=store,
            batch_size=BATCH, evaluation=test, seed=self.seed, clock=time.thread_time,
        )
        length = method.tau + method.compression_steps
        curve, rounds = [], []
        for report in trainer.rounds(self.steps // length, max(1, EVALUATE_EVERY // length)):
            rounds.append(report)
            if report.global_error is not None:
                errors = [report.global_error, float(np.mean(report.local_errors))]
                curve.append([len(rounds), *errors])
        local = trainer.local_model(lambda: get_model("nin_digits", classes=10))
        together = trainer.global_model(lambda: get_model("nin_digits", classes=10))
        return {
            "local": error(local, test), "global": error(together, test), "curve": curve,
            "rounds": [
                [report.steps, store.num_workers * (report.relabelled + report.averaged),
                 self._models(report)] for report in rounds
            ],
            "model_bytes": sum(4 * p.data().size for p in network.collect_params().values()),
            "step_seconds": statistics.median(r.seconds["local"] / method.tau for r in rounds[1:]),
            "forward_seconds": [
                r.seconds["relabel"] / (store.num_workers * r.relabelled)
                for r in rounds if r.relabelled
            ],
            "jensen": [[r.ensemble_loss, r.mean_loss] for r in rounds if r.relabelled],
        }

    def _models(self, report: ec_dnn.Aggregation) -> int:
        """Models that a worker receives in a round."""
        if self.method == "ma_dnn":
            return 1
        return (self.workers - 1) * ((report.relabelled > 0) + (report.averaged > 0))


def make_optimizer(steps: int) -> mx.optimizer.Optimizer:
    schedule = mx.lr_scheduler.PolyScheduler(steps, base_lr=LEARNING_RATE, pwr=1)
    optimizer = mx.optimizer.SGD(
        learning_rate=LEARNING_RATE, momentum=MOMENTUM, wd=WEIGHT_DECAY, lr_scheduler=schedule
    )
    optimizer.aggregate_num = 60  # all parameters in one operation
    return optimizer


def error(network: Any, test: Tuple[Any, Any]) -> float:
    return float((network(mx.nd.array(test[0])).asnumpy().argmax(axis=1) != test[1]).mean())


def _all(batches: Iterator[Tuple[Any, Any]]) -> Tuple[np.ndarray, np.ndarray]:
    images, labels = zip(*batches)
    return np.concatenate(images), np.concatenate(labels).astype(np.int64)


Results = Dict[Training, Dict[str, Any]]


def wanted(arguments: argparse.Namespace) -> Iterator[Training]:
    for data in arguments.data:
        for seed in arguments.seeds:
            for workers in arguments.workers:
                yield Training("e_dnn", workers, STEPS, seed, data)
                for method in ("ma_dnn", *ENSEMBLES):
                    for period in PERIODS:
                        yield Training(method, workers, period, seed, data)
    for seed in arguments.seeds:
        yield Training("s_dnn", 1, 4 * STEPS, seed, "shared")


class Tables:
    """Markdown, of the trainings that a command asks for."""

    def __init__(self, results: Results, arguments: argparse.Namespace) -> None:
        self._results, self._arguments = results, arguments
        found = results.values()
        self._step = statistics.median(one["step_seconds"] for one in found)
        self._forward = statistics.median(s for one in found for s in one["forward_seconds"])
        self._model = max(one["model_bytes"] for one in found) * 8e-9 / arguments.gigabits

    def lines(self) -> Iterator[str]:
        yield from self._about()
        for data in self._arguments.data:
            title = "its part of the examples" if data == "partitioned" else "all of the examples"
            yield from ("", f"## Each worker with {title}", "")
            yield from self._errors(data)
            yield from ("", "Differences of the global models in points, paired by seed:", "")
            yield from self._differences(data)
            yield from ("", *self._improvements(data))

    def _about(self) -> Iterator[str]:
        defaults = ec_dnn.Method("ec_dnn_s", tau=1)
        yield "# EC-DNN, averages of models and a final ensemble"
        yield ""
        yield f"Made by `OMP_NUM_THREADS=1 {command('ec_dnn_accuracy.py')}`."
        yield ""
        yield (
            f"scikit-learn's digits, {TRAIN_SIZE} to train on and the other half to test, a fresh "
            f"split for each of {len(self._arguments.seeds)} seeds; Network in Network with batch "
            f"normalisation, {self._parameters} numbers; SGD with momentum {MOMENTUM} and decay "
            f"{WEIGHT_DECAY}, a learning rate that falls from {LEARNING_RATE} to 0 in a line; "
            f"{STEPS} mini-batches of {BATCH} for each worker, those of compression included "
            f"({4 * STEPS} for S-DNN); p {defaults.p:g} %, mu {defaults.mu}, alpha "
            f"{defaults.alpha}, beta {defaults.beta}, the paper's."
        )
        yield ""
        yield (
            "Errors are in per cent, means over the seeds with intervals of 95 %. G is the global "
            "model, L the local one with the smallest training loss. Each method has the tau of "
            f"its best global error, as in the paper, of periods of {', '.join(map(str, PERIODS))} "
            "mini-batches from one aggregation to the next; tau leaves out those of compression. "
            "Speed is the time that MA-DNN's global model takes to its final error, over the time "
            "that the method takes to the same, on curves that are means over the seeds; 0: never. "
            f"Time is {1e3 * self._step:.2f} ms a mini-batch and {1e6 * self._forward:.0f} µs an "
            "example of a forward pass in relabelling, the medians over all trainings, and "
            f"{self._model * 1e3:.2f} ms a model received, at {self._arguments.gigabits:g} Gbit/s."
        )
        rows = [pair for one in self._results.values() for pair in one["jensen"]]
        broken = sum(together > alone for together, alone in rows)
        yield ""
        yield (
            f"At {len(rows)} aggregations (worker 0's examples) the simple ensemble's cross "
            f"entropy was above the mean of the models' {broken} times; Jensen's inequality has "
            "it 0."
        )

    @property
    def _parameters(self) -> int:
        return max(one["model_bytes"] for one in self._results.values()) // 4

    def _errors(self, data: str) -> Iterator[str]:
        counts = self._arguments.workers
        yield "| |" + "".join(f" K = {count}: error | speed | tau |" for count in counts)
        yield "| --- |" + " ---: | ---: | ---: |" * len(counts)
        for which in ("global", "local"):
            for method in NAMES:
                cells = [self._cell(method, count, data, which) for count in counts]
                yield f"| {NAMES[method]}, {which[0].upper()} | " + " | ".join(cells) + " |"
        alone = np.array([
            self._results[Training("s_dnn", 1, 4 * STEPS, seed, "shared")]["global"]
            for seed in self._arguments.seeds
        ])
        yield f"| S-DNN | {interval(100 * alone)} |" + " |" * (3 * len(counts) - 1)

    def _cell(self, method: str, count: int, data: str, which: str) -> str:
        period = self._best(method, count, data)
        tau = "-" if method == "e_dnn" else str(Training(method, count, period, 0, data).tau)
        errors = 100 * self._final(method, count, period, data, which)
        return f"{interval(errors)} | {self._speed(method, count, data, which):.2f} | {tau}"

    def _best(self, method: str, count: int, data: str) -> int:
        """The period with the smallest error of the global model."""
        periods = (STEPS,) if method == "e_dnn" else PERIODS
        return min(periods, key=lambda p: self._final(method, count, p, data, "global").mean())

    def _found(self, method: str, count: int, period: int, data: str) -> List[Dict[str, Any]]:
        return [
            self._results[Training(method, count, period, seed, data)]
            for seed in self._arguments.seeds
        ]

    def _final(self, method: str, count: int, period: int, data: str, which: str) -> np.ndarray:
        return np.array([one[which] for one in self._found(method, count, period, data)])

    def _speed(self, method: str, count: int, data: str, which: str) -> float:
        period = self._best("ma_dnn", count, data)
        goal = self._final("ma_dnn", count, period, data, "global").mean()
        seconds = self._time_to(goal, "ma_dnn", count, data, "global")
        own = self._time_to(goal, method, count, data, which)
        return seconds / own if own is not None and seconds is not None else 0.0

    def _time_to(
        self, goal: float, method: str, count: int, data: str, which: str
    ) -> Optional[float]:
        """Seconds until the mean error over the seeds is `goal`; L's is the mean of the models."""
        found = self._found(method, count, self._best(method, count, data), data)
        errors = np.mean(
            [[row[1 if which == "global" else 2] for row in one["curve"]] for one in found], axis=0
        )
        last = self._final(method, count, self._best(method, count, data), data, which).mean()
        errors[-1] = min(errors[-1], last)  # that of the final model
        for row, error_then in zip(found[0]["curve"], errors):
            if error_then <= goal:
                rounds = np.array(found[0]["rounds"][: row[0]])
                costs = (self._step, self._forward, self._model)
                work = (rounds[-1, 0], rounds[:, 1].sum(), rounds[:, 2].sum())
                return float(np.dot(costs, work))
        return None

    def _differences(self, data: str) -> Iterator[str]:
        counts = self._arguments.workers
        yield "| |" + "".join(f" K = {count} |" for count in counts)
        yield "| --- |" + " ---: |" * len(counts)
        for method in ENSEMBLES:
            for other in ("e_dnn", "ma_dnn"):
                cells = [
                    interval(100 * (self._of_best(method, count, data)
                                    - self._of_best(other, count, data)), "+")
                    for count in counts
                ]
                yield f"| {NAMES[method]} less {NAMES[other]} | " + " | ".join(cells) + " |"

    def _of_best(self, method: str, count: int, data: str) -> np.ndarray:
        return self._final(method, count, self._best(method, count, data), data, "global")

    def _improvements(self, data: str) -> Iterator[str]:
        """Equation 11, over all measurements of all trainings."""
        for method in ("ma_dnn", "ec_dnn_s"):
            gains = np.array([
                alone - together
                for training, one in self._results.items()
                if training.method == method and training.data == data
                for _, together, alone in one["curve"]
            ])
            yield (
                f"{NAMES[method]}'s global model was worse than the mean of the local ones in "
                f"{100 * (gains < 0).mean():.0f} % of {len(gains)} measurements, and "
                f"{100 * gains.mean():+.1f} points better on the average (equation 11)."
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="JSON lines; made if absent")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--data", nargs="+", default=["partitioned", "shared"],
                        choices=("partitioned", "shared"))
    parser.add_argument("--gigabits", type=float, default=1.0, help="a second, of a worker's link")
    arguments = parser.parse_args()
    results = complete(arguments.results, Training, wanted(arguments))
    print("\n".join(Tables(results, arguments).lines()))


if __name__ == "__main__":
    main()
