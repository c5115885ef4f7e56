#!/usr/bin/env python3
r"""TernGrad in larger and larger batches: the arms of its paper's tables, in Markdown.

    OMP_NUM_THREADS=1 python benchmarks/terngrad_tables.py --results tables.jsonl \
        > benchmarks/terngrad_tables.md

After tables 1 to 3 of the paper (Wen et al., NeurIPS 2017), with scikit-learn's digits. Workers and
servers are simulated (simulations/gradients.py). The command can be ended and called again at any
time (trainings.py).
"""
from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

import accuracy
import mxnet as mx
import numpy as np
from accuracy import POWER, WEIGHT_DECAY, Found
from compression_accuracy import EVALUATED, WINDOW, evaluated, train
from intervals import compared, interval
from kvstore_ext.compression import parse
from mxnet import gluon
from simulations.gradients import Simulation
from trainings import command, complete, make_parser

WORKER_BATCH = 16
AVERAGE = EVALUATED[1]
ADAM_RATE = 0.001
MOMENTUM, RATE = 0.9, 0.005  # a worker: the rate grows with their number, as in table 2
TERNGRAD: Dict[str, Any] = {"type": "terngrad"}
NOT_CLIPPED = {**TERNGRAD, "clip_sigma": 0}


@dataclass(frozen=True)
class Arm:
    """A row of a table.

    Parameters
    ----------
    compression
        None for floats.
    dropout
        Of the hidden dense layer's units.
    less
        The arm that it is compared with.
    """

    table: int
    compression: Optional[Dict[str, Any]] = None
    dropout: float = 0.0
    weight_decay: float = WEIGHT_DECAY
    less: Tuple[str, ...] = ()


FLOATS_2, FLOATS_3 = "floats, dropout 0.5", "floats, dropout 0.2, decay 4e-5"
ARMS: Dict[str, Arm] = {
    "Adam, floats": Arm(1),
    "Adam, TernGrad": Arm(1, TERNGRAD, less=("Adam, floats",)),
    FLOATS_2: Arm(2, None, 0.5),
    "floats, dropout 0.2": Arm(2, None, 0.2, less=(FLOATS_2,)),
    "TernGrad, dropout 0.2": Arm(2, TERNGRAD, 0.2, less=(FLOATS_2, "floats, dropout 0.2")),
    "TernGrad, not clipped, dropout 0.2": Arm(
        2, NOT_CLIPPED, 0.2, less=(FLOATS_2, "TernGrad, dropout 0.2")),
    FLOATS_3: Arm(3, None, 0.2, 4e-5),
    "floats, dropout 0.08, decay 1e-5": Arm(3, None, 0.08, 1e-5, less=(FLOATS_3,)),
    "TernGrad, dropout 0.08, decay 1e-5": Arm(
        3, TERNGRAD, 0.08, 1e-5, less=(FLOATS_3, "floats, dropout 0.08, decay 1e-5")),
}
WORKERS = {1: (2, 16), 2: (2, 4, 8), 3: (2, 4, 8)}  # by table
TITLES = {
    1: "Adam (table 1)",
    2: "Dropout, and gradients that are not clipped (table 2)",
    3: "Less dropout and less decay (table 3)",
}
NOT_SHOWN = [
    "It does not show other networks, other data, other rates or longer trainings; nor, where an",
    "interval has zero in it, that there is no difference. The paper compares TernGrad with floats",
    "that have more dropout and more decay; floats that have as little are beyond it.",
]


@dataclass(frozen=True)
class Training:
    """The split, the first parameters, the order of the examples, dropout and random rounding
    follow from the seed."""

    arm: str
    workers: int
    seed: int
    epochs: int

    def run(self) -> Found:
        """Trains; returns percentages of images that are recognised."""
        arm, data = ARMS[self.arm], accuracy.split(self.seed)
        batch = WORKER_BATCH * self.workers
        network = accuracy.make_network(data, self.seed)
        output = add_dropout(network, arm.dropout)
        excluded = () if arm.table == 1 else list(output.collect_params().values())
        method = arm.compression and parse({"seed": self.seed, **arm.compression})
        # The sum of floats is that of one worker with the whole batch.
        workers = self.workers if method else 1
        optimizer = self._optimizer(arm, self.epochs * data.steps(batch), batch)
        simulation = Simulation(network, optimizer, workers, method, excluded=excluded)
        average = train(simulation, data, workers, self.epochs, batch)
        return evaluated(simulation, network, data, average, batch)

    def _optimizer(self, arm: Arm, iterations: int, batch: int) -> mx.optimizer.Optimizer:
        if arm.table == 1:
            schedule = accuracy.schedule(ADAM_RATE, iterations, batch, arm.weight_decay)
            return mx.optimizer.Adam(**schedule)
        schedule = accuracy.schedule(RATE * self.workers, iterations, batch, arm.weight_decay)
        return mx.optimizer.SGD(momentum=MOMENTUM, **schedule)


def add_dropout(network: gluon.HybridBlock, share: float) -> gluon.nn.Dense:
    """Between the dense layers of LeNet; returns the last one."""
    hidden, output = network.head
    network.head = gluon.nn.HybridSequential()
    network.head.add(hidden, gluon.nn.Dropout(share), output)
    return output


def trainings(arguments: argparse.Namespace) -> Iterator[Training]:
    """All that the command asks for."""
    for seed in arguments.seeds:
        for name in arguments.methods:
            for workers in WORKERS[ARMS[name].table]:
                yield Training(name, workers, seed, arguments.epochs)


class Tables:
    """Markdown, of the trainings that a command asks for."""

    def __init__(self, results: Dict[Training, Found], arguments: argparse.Namespace) -> None:
        self._results, self._arguments = results, arguments

    def lines(self) -> Iterator[str]:
        yield from configuration(self._arguments)
        for table, title in TITLES.items():
            names = [name for name in self._arguments.methods if ARMS[name].table == table]
            if names:
                yield from ("", f"## {title}", "")
                yield from self._table(names, WORKERS[table])
        yield from ("", *NOT_SHOWN)

    def _table(self, names: List[str], all_workers: Tuple[int, ...]) -> Iterator[str]:
        yield "| | " + " | ".join(f"N = {count} | training" for count in all_workers) + " |"
        yield "| --- |" + " ---: |" * 2 * len(all_workers)
        for name in names:
            cells = []
            for workers in all_workers:
                found = self._of_seeds(name, workers)
                cells += [interval(found[AVERAGE]), f"{np.mean(found['training']):.2f}"]
            yield f"| {name} | " + " | ".join(cells) + " |"
        for other in names:
            differences = {
                f"{name}, N = {workers}":
                    self._of_seeds(name, workers)[AVERAGE] - self._of_seeds(other, workers)[AVERAGE]
                for name in names
                if other in ARMS[name].less
                for workers in all_workers
            }
            if differences:
                yield ""
                yield compared(f"Less `{other}`", differences)

    def _of_seeds(self, name: str, workers: int) -> Dict[str, np.ndarray]:
        """Percentages, one a seed, by what they are of."""
        return accuracy.by_what(
            self._results[Training(name, workers, seed, self._arguments.epochs)]
            for seed in self._arguments.seeds
        )


def configuration(arguments: argparse.Namespace) -> List[str]:
    return [
        "# TernGrad in larger batches",
        "",
        f"Made by `{command('terngrad_tables.py')}`.",
        "",
        "LeNet (gluon_models/lenet.py) on scikit-learn's handwritten digits: percentages of test",
        "images that the moving average of the parameters recognises, and of training images that",
        "the final parameters do; differences in points with the same seed; means over the seeds,",
        "with 95 % intervals (t distribution).",
        "",
        accuracy.seeds_and_split(arguments.seeds),
        "  test, the first parameters, the order of the examples, dropout and random rounding.",
        f"- {WORKER_BATCH} images a step on each of N workers, which are simulated"
        " (benchmarks/simulations/gradients.py);",
        f"  {arguments.epochs} epochs, so that twice as many workers make half as many steps. A"
        " learning rate that",
        f"  falls to zero with the power {POWER}, from {ADAM_RATE} with Adam, and with SGD and"
        f" momentum {MOMENTUM}",
        f"  from {RATE} a worker; weight decay {WEIGHT_DECAY} where nothing else is said. The"
        " moving average",
        f"  forgets all but 1/e in {WINDOW:.0%} of the steps.",
        "- As in the paper, the last layer travels as floats but with Adam. Dropout is of the"
        " hidden dense layer.",
    ]


def main() -> None:
    arguments = make_parser(__doc__, epochs=60, methods=ARMS).parse_args()
    results = complete(arguments.results, Training, trainings(arguments))
    print(*Tables(results, arguments).lines(), sep="\n")


if __name__ == "__main__":
    main()
