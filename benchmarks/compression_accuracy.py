#!/usr/bin/env python3
r"""How accurate a network gets with compressed gradients, compared with floats: tables in Markdown.

    OMP_NUM_THREADS=1 python benchmarks/compression_accuracy.py --results accuracy.jsonl \
        > benchmarks/compression_accuracy.md

After figure 3 of the TernGrad paper (Wen et al., NeurIPS 2017, section 4.1), with scikit-learn's
digits for MNIST. Workers and servers are simulated (simulations/gradients.py). The command can be
ended and called again at any time (trainings.py).
"""
from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

import accuracy
import mxnet as mx
import numpy as np
from accuracy import BATCH, POWER, WEIGHT_DECAY, Found
from datasets import Dataset
from intervals import compared, interval, shown
from kvstore_ext.compression import Compression, parse
from mxnet import gluon
from simulations.gradients import Simulation
from trainings import command, complete, make_parser

BASE_RATES = {0.9: 0.01, 0.0: 0.1}  # by momentum
WINDOW = 0.1  # share of the iterations in which the moving average forgets all but 1/e
WARMUP_EPOCHS = 4  # of dgc, as in its paper
FLOAT = "float"
DGC, MASKED = "dgc", "dgc, masked"
METHODS: Dict[str, Dict[str, Any]] = {
    "terngrad": {"type": "terngrad"},
    "terngrad, not clipped": {"type": "terngrad", "clip_sigma": 0},
    "qsgd": {"type": "qsgd"},
    "onebit": {"type": "onebit"},
    DGC: {"type": "dgc", "ratio": 0.01},
    MASKED: {"type": "dgc", "ratio": 0.01, "momentum_masking": True},
}
NOT_SHOWN = [
    "It does not show other networks, other data, other learning rates or longer trainings; nor,",
    "where an interval has zero in it, that there is no difference.",
]
EVALUATED = ("final parameters", "moving average")


@dataclass(frozen=True)
class Training:
    """Without compression the number of workers changes nothing but how sums are rounded: it is 1.

    The split, the first parameters, the order of the examples and random rounding follow from the
    seed.
    """

    method: str
    workers: int
    momentum: float
    seed: int
    epochs: int

    def run(self) -> Found:
        """Trains; returns percentages of images that are recognised."""
        data = accuracy.split(self.seed)
        steps = data.steps(BATCH)
        network = accuracy.make_network(data, self.seed)
        optimizer = accuracy.make_optimizer(
            BASE_RATES[self.momentum], self.momentum, self.epochs * steps, BATCH
        )
        simulation = self._simulation(network, optimizer, steps)
        average = train(simulation, data, self.workers, self.epochs)
        return evaluated(simulation, network, data, average)

    def _simulation(
        self, network: gluon.Block, optimizer: mx.optimizer.Optimizer, steps_per_epoch: int
    ) -> Simulation:
        method = self._compression(steps_per_epoch)
        return Simulation(network, optimizer, self.workers, method)

    def _compression(self, steps_per_epoch: int) -> Optional[Compression]:
        if self.method == FLOAT:
            return None
        options = dict(METHODS[self.method])
        if options["type"] in ("terngrad", "qsgd"):
            options["seed"] = self.seed
        if options["type"] == "dgc":
            options["warmup_rounds"] = WARMUP_EPOCHS * steps_per_epoch
        return parse(options)


def train(
    simulation: Simulation, data: Dataset, workers: int, epochs: int, batch: int = BATCH
) -> List[np.ndarray]:
    """Trains; returns the exponential moving average of the parameters."""
    newest = 1 / (WINDOW * epochs * data.steps(batch))  # the weight of the latest parameters
    average = simulation.values()
    for epoch in range(1, epochs + 1):
        for batches in accuracy.steps(data, workers, epoch, batch):
            simulation.step(batches)
            for mean, value in zip(average, simulation.values()):
                mean += newest * (value - mean)
    return average


def evaluated(
    simulation: Simulation,
    network: gluon.Block,
    data: Dataset,
    average: Sequence[np.ndarray],
    batch: int = BATCH,
) -> Found:
    """Percentages of images that are recognised, after the training of a network; `average` is the
    moving average of its parameters, and what it has in the end."""
    found = {"training": accuracy.percentage(network, data.train(1, batch, 0, 1))}
    for name, values in zip(EVALUATED, (simulation.values(), average)):
        simulation.network.set_values(values)
        found[name] = accuracy.percentage(network, data.validation(batch))
    return found


Results = Dict[Training, Found]


def trainings(arguments: argparse.Namespace) -> Iterator[Training]:
    """All that the command asks for, those with floats first with each momentum."""
    for momentum in BASE_RATES:
        for method in [FLOAT, *methods_of(arguments, momentum)]:
            for workers in [1] if method == FLOAT else arguments.workers:
                for seed in arguments.seeds:
                    yield Training(method, workers, momentum, seed, arguments.epochs)


def methods_of(arguments: argparse.Namespace, momentum: float) -> List[str]:
    """Those that differ with this momentum."""
    return [
        method
        for method in arguments.methods
        if momentum or "momentum_masking" not in METHODS[method]
    ]


def sections(of: Callable[[float], Iterator[str]]) -> Iterator[str]:
    """Markdown: what is to be said of each momentum, under a title."""
    for momentum in BASE_RATES:
        title = f"## SGD with momentum {momentum}" if momentum else "## SGD without momentum"
        yield from ("", title, "")
        yield from of(momentum)


class Tables:
    """Markdown, of the trainings that a command asks for."""

    def __init__(self, results: Results, arguments: argparse.Namespace) -> None:
        self._results, self._arguments = results, arguments

    def lines(self) -> Iterator[str]:
        yield from configuration(self._arguments)
        yield from sections(self._section)
        yield from ("", *NOT_SHOWN)

    def _section(self, momentum: float) -> Iterator[str]:
        yield self._float_accuracies(momentum)
        for name in EVALUATED:
            yield from ("", f"Differences in points, {name}:", "")
            yield from self._differences(momentum, name)

    def _float_accuracies(self, momentum: float) -> str:
        found = self._of_seeds(FLOAT, 1, momentum)
        tested = ", ".join(f"{interval(found[name])} % with the {name}" for name in EVALUATED)
        return f"Floats: {tested}; {np.mean(found['training']):.2f} % of the training images."

    def _differences(self, momentum: float, name: str) -> Iterator[str]:
        workers = self._arguments.workers
        yield "| | " + " | ".join(f"N = {count}" for count in workers) + " |"
        yield "| --- |" + " ---: |" * len(workers)
        floats = self._of_seeds(FLOAT, 1, momentum)[name]
        methods = methods_of(self._arguments, momentum)
        differences = {}
        for method in methods:
            cells = []
            for count in workers:
                difference = self._of_seeds(method, count, momentum)[name] - floats
                differences[f"{method}, N = {count}"] = difference
                cells.append(interval(difference, "+"))
            yield f"| {method} | " + " | ".join(cells) + " |"
        yield ""
        yield shown(differences)
        if {DGC, MASKED} <= set(methods):
            yield ""
            yield compared(f"`{DGC}` less `{MASKED}`", {
                f"N = {count}":
                    differences[f"{DGC}, N = {count}"] - differences[f"{MASKED}, N = {count}"]
                for count in workers
            })

    def _of_seeds(self, method: str, workers: int, momentum: float) -> Dict[str, np.ndarray]:
        """Percentages, one a seed, by what they are of."""
        epochs = self._arguments.epochs
        return accuracy.by_what(
            self._results[Training(method, workers, momentum, seed, epochs)]
            for seed in self._arguments.seeds
        )


def configuration(arguments: argparse.Namespace) -> List[str]:
    iterations = arguments.epochs * accuracy.split(0).steps(BATCH)
    return [
        "# Accuracy with compressed gradients",
        "",
        f"Made by `{command('compression_accuracy.py')}`.",
        "",
        "LeNet (gluon_models/lenet.py) on scikit-learn's handwritten digits: what compression adds",
        "to the percentage of test images that are recognised, compared with floats and the same",
        "seed; means over the seeds, with 95 % intervals (t distribution).",
        "",
        accuracy.seeds_and_split(arguments.seeds),
        "  test, the first parameters, the order of the examples and random rounding.",
        "- As in section 4.1 and figure 3 of the TernGrad paper (Wen et al., NeurIPS 2017):"
        f" {BATCH} images a",
        f"  step, shared out to N workers; weight decay {WEIGHT_DECAY}; a learning rate that falls"
        f" to zero with the",
        f"  power {POWER}, from {BASE_RATES[0.9]} with momentum and {BASE_RATES[0.0]} without.",
        f"- {iterations} steps, {arguments.epochs} epochs. The moving average of the parameters"
        f" decays by {1 - 1 / (WINDOW * iterations):.5f} a step.",
        *_options(arguments.methods),
        "- Workers and servers are simulated in one process (benchmarks/simulations/gradients.py),"
        " with the bits of a cluster.",
    ]


def _options(methods: Sequence[str]) -> List[str]:
    """Those that are not the defaults."""
    if not {DGC, MASKED} & set(methods):
        return ["- Types of compression with their default options."]
    return [
        "- Types of compression with their default options, but for dgc: it sends"
        f" {METHODS[DGC]['ratio']:.0%} of the elements",
        f"  after a warm-up of {WARMUP_EPOCHS} epochs; masked, as in its paper, it forgets the"
        " momentum of what it sends.",
    ]


def main() -> None:
    parser = make_parser(__doc__, epochs=60, methods=METHODS)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8])
    arguments = parser.parse_args()
    results = complete(arguments.results, Training, trainings(arguments))
    print(*Tables(results, arguments).lines(), sep="\n")


if __name__ == "__main__":
    main()
