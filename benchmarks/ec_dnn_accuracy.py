#!/usr/bin/env python3
r"""EC-DNN beside averages of models and a final ensemble: the paper's tables 2 and 3, in Markdown.

    OMP_NUM_THREADS=1 python benchmarks/ec_dnn_accuracy.py --results ec_dnn.jsonl \
        > benchmarks/ec_dnn_accuracy.md

After Sun and Liu, Neurocomputing 2018, section 6, with scikit-learn's digits for CIFAR and a small
Network in Network. Workers are simulated (ec_dnn_simulation.py). The file of results gets a line
after each training; what stands in it is not trained again, so that the command can be ended and
called again at any time, and several can share the work.
"""
from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

# Everything a worker computes, its own thread does.
os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from datasets import digits
from ec_dnn_simulation import SimulatedStore, run
from gluon_models import get_model
from kvstore_ext import ec_dnn
from scipy import stats

TRAIN_SIZE = 896  # half of the images
BATCH = 32  # of a worker
STEPS = 132  # mini-batches of a worker, those of compression included
PERIODS = (4, 11, 44)  # mini-batches from one aggregation to the next
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.05, 0.9, 5e-4
EVALUATE_EVERY = 11  # mini-batches
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
        network = get_model("nin_digits")
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
        local = trainer.local_model(lambda: get_model("nin_digits"))
        together = trainer.global_model(lambda: get_model("nin_digits"))
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


def read(file: Path) -> Results:
    """All trainings in the file, which may not exist."""
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return {Training(**row["training"]): row["found"] for row in rows}


def wanted(arguments: argparse.Namespace) -> Iterator[Training]:
    for seed in arguments.seeds:
        for data in arguments.data:
            yield Training("s_dnn", 1, 4 * STEPS, seed, "shared")
            for workers in arguments.workers:
                yield Training("e_dnn", workers, STEPS, seed, data)
                for method in ("ma_dnn", *ENSEMBLES):
                    for period in PERIODS:
                        yield Training(method, workers, period, seed, data)


def complete(arguments: argparse.Namespace) -> Results:
    """Runs the trainings that the file of results lacks."""
    for training in wanted(arguments):
        if training in read(arguments.results):
            continue
        begun = time.process_time()
        row = {"training": asdict(training), "found": training.run()}
        with arguments.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        used, found = time.process_time() - begun, row["found"]
        print(f"{used:.1f} s of CPU: {training}: global {found['global']:.4f}, local "
              f"{found['local']:.4f}", file=sys.stderr, flush=True)
    return read(arguments.results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="JSON lines; made if absent")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--data", nargs="+", default=["partitioned", "shared"],
                        choices=("partitioned", "shared"))
    parser.add_argument("--gigabits", type=float, default=1.0, help="a second, of a worker's link")
    arguments = parser.parse_args()
    results = complete(arguments)
    print(len(results))


if __name__ == "__main__":
    main()
