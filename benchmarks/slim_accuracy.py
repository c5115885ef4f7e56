#!/usr/bin/env python3
r"""How accurate a network gets with Slim-DP, and with plain data parallelism: tables in Markdown.

    OMP_NUM_THREADS=1 python benchmarks/slim_accuracy.py --results slim.jsonl \
        > benchmarks/slim_accuracy.md

After table 2 and figure 4 of the Slim-DP paper (Sun et al., AAAI 2018), with scikit-learn's digits
for ImageNet. Workers and servers are simulated (simulations/). The command can be ended and called
again at any time (trainings.py).
"""
from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Tuple, Union

import accuracy
import numpy as np
from accuracy import BATCH, POWER, WEIGHT_DECAY, Found
from intervals import compared, interval, shown
from kvstore_ext.compression import parse
from kvstore_ext.methods import SlimDP
from mxnet import gluon
from simulations.gradients import Simulation
from simulations.slim_dp import SlimSimulation
from trainings import command, complete, make_parser

MOMENTUM = 0.9
PLAIN, QUANT = "plain", "quantized"
BEST = "(0.3, 0.15), pushed"  # the store's default
METHODS: Dict[str, Dict[str, Any]] = {  # by alpha, beta and explorer_mean
    PLAIN: {"alpha": 1, "beta": 1},
    QUANT: {"type": "qsgd"},
    BEST: {"alpha": 0.3, "beta": 0.15, "explorer_mean": "pushed"},
    "(0.3, 0.15), all": {"alpha": 0.3, "beta": 0.15, "explorer_mean": "all"},
    "(0.2, 0.1), pushed": {"alpha": 0.2, "beta": 0.1, "explorer_mean": "pushed"},
    "(0.2, 0.1), all": {"alpha": 0.2, "beta": 0.1, "explorer_mean": "all"},
    "(0.5, 0.25), pushed": {"alpha": 0.5, "beta": 0.25, "explorer_mean": "pushed"},
    "(0.3, 0), pushed": {"alpha": 0.3, "beta": 0, "explorer_mean": "pushed"},
    "(0.3, 0.3)": {"alpha": 0.3, "beta": 0.3},
    "(0.3, 0.15), all, server_lr 2": {
        "alpha": 0.3,
        "beta": 0.15,
        "explorer_mean": "all",
        "server_lr": 2,
    },
    "q 10": {"alpha": 0.3, "beta": 0.15, "q": 10},
    "q 160": {"alpha": 0.3, "beta": 0.15, "q": 160},
    "p 4, q 10": {"alpha": 0.3, "beta": 0.15, "p": 4, "q": 10},
    "core_delay 20": {"alpha": 0.3, "beta": 0.15, "core_delay": 20},
}
# What is compared with what, by what it is called.
COMPARED: Dict[str, List[Tuple[str, str]]] = {
    "`pushed` less `all`":
        [(f"{shares}, pushed", f"{shares}, all") for shares in ("(0.3, 0.15)", "(0.2, 0.1)")],
    f"{BEST} less {QUANT}": [(BEST, QUANT)],
    f"Less {BEST}": [
        (method, BEST) for method in (
            "(0.2, 0.1), pushed", "(0.5, 0.25), pushed", "(0.3, 0), pushed", "(0.3, 0.3)",
            "q 10", "q 160", "p 4, q 10", "core_delay 20",
        )
    ],
}
NOT_SHOWN = [
    "It does not show other networks, other data or longer trainings; nor, where an interval has",
    "zero in it, that there is no difference. Nor does it show what the paper's Slim-DP has, 0.2",
    "to 0.5 points more than plain data parallelism.",
]
# When the test images are looked at, as shares of all epochs.
SHOWN = (1 / 15, 2 / 15, 1 / 5, 1 / 3, 1 / 2, 2 / 3, 1.0)


@dataclass(frozen=True)
class Training:
    """The split, the first parameters, the order of the examples and the explorers follow from the
    seed."""

    method: str
    workers: int
    seed: int
    epochs: int
    rate: float
    q: int

    def run(self) -> Found:
        """Trains; returns percentages of images that the global parameters recognise: of those to
        train on, and of those to test after some epochs."""
        data = accuracy.split(self.seed)
        network = accuracy.make_network(data, self.seed)
        simulation = self._simulation(network, self.epochs * data.steps(BATCH))
        shown = shown_epochs(self.epochs)
        found = {}
        for epoch in range(1, self.epochs + 1):
            for batches in accuracy.steps(data, self.workers, epoch):
                simulation.step(batches)
            if epoch in shown:
                simulation.network.set_values(simulation.values())
                found[str(epoch)] = accuracy.percentage(network, data.validation(BATCH))
        found["training"] = accuracy.percentage(network, data.train(1, BATCH, 0, 1))
        return found

    def _simulation(
        self, network: gluon.HybridBlock, iterations: int
    ) -> Union[Simulation, SlimSimulation]:
        """With plain SGD of summed gradients where these are quantized, as in Quant-DP."""
        options, workers = {"seed": self.seed, **METHODS[self.method]}, self.workers
        batch = BATCH if self.method == QUANT else BATCH // workers
        optimizer = accuracy.make_optimizer(self.rate, MOMENTUM, iterations, batch)
        if self.method == QUANT:
            return Simulation(network, optimizer, workers, parse(options))
        method = parse({"type": "slim_dp", "q": self.q, **options})
        assert isinstance(method, SlimDP)
        return SlimSimulation(network, optimizer, workers, method, workers)


def shown_epochs(epochs: int) -> List[int]:
    """After which the test images are looked at, the last one included."""
    return sorted({max(1, round(share * epochs)) for share in SHOWN})


def trainings(arguments: argparse.Namespace) -> Iterator[Training]:
    """All that the command asks for."""
    for seed in arguments.seeds:
        for workers in arguments.workers:
            for method in arguments.methods:
                settings = (arguments.epochs, arguments.rate, arguments.q)
                yield Training(method, workers, seed, *settings)


class Tables:
    """Markdown, of the trainings that a command asks for."""

    def __init__(self, results: Dict[Training, Found], arguments: argparse.Namespace) -> None:
        self._results, self._arguments = results, arguments

    def lines(self) -> Iterator[str]:
        yield from configuration(self._arguments)
        yield from ("", "## After the last step", "")
        yield from self._final()
        yield from ("", *self._shown())
        for workers in self._arguments.workers:
            yield from ("", f"## Exploration and exploitation, K = {workers}", "")
            yield from self._courses(workers)

    def _final(self) -> Iterator[str]:
        last, all_workers = str(self._arguments.epochs), self._arguments.workers
        heads = " | ".join(f"K = {workers} | less plain | training" for workers in all_workers)
        yield f"| (alpha, beta) | {heads} |"
        yield "| --- |" + " ---: |" * 3 * len(all_workers)
        for method in self._arguments.methods:
            cells = []
            for workers in all_workers:
                found = self._of_seeds(method, workers)
                difference = found[last] - self._of_seeds(PLAIN, workers)[last]
                cells += [
                    interval(found[last]),
                    "" if method == PLAIN else interval(difference, "+"),
                    f"{np.mean(found['training']):.2f}",
                ]
            yield f"| {method} | " + " | ".join(cells) + " |"

    def _shown(self) -> Iterator[str]:
        """What the table above tells, and what not."""
        methods = self._arguments.methods
        less_plain = self._differences([(method, PLAIN) for method in methods if method != PLAIN])
        yield f"Differences from plain. {shown(less_plain)}"
        for what, pairs in COMPARED.items():
            asked = [pair for pair in pairs if set(pair) <= set(methods)]
            if asked:
                yield ""
                yield compared(what, self._differences(asked))
        yield ""
        yield from NOT_SHOWN

    def _differences(self, pairs: List[Tuple[str, str]]) -> Dict[str, np.ndarray]:
        """Of two methods after the last step, by the first one and the number of workers."""
        last = str(self._arguments.epochs)
        return {
            f"{one}, K = {workers}":
                self._of_seeds(one, workers)[last] - self._of_seeds(other, workers)[last]
            for workers in self._arguments.workers
            for one, other in pairs
        }

    def _courses(self, workers: int) -> Iterator[str]:
        steps = accuracy.split(0).steps(BATCH)
        epochs = shown_epochs(self._arguments.epochs)
        yield "| (alpha, beta) | " + " | ".join(f"step {steps * epoch}" for epoch in epochs) + " |"
        yield "| --- |" + " ---: |" * len(epochs)
        for method in self._arguments.methods:
            found = self._of_seeds(method, workers)
            cells = [interval(found[str(epoch)]) for epoch in epochs]
            yield f"| {method} | " + " | ".join(cells) + " |"

    def _of_seeds(self, method: str, workers: int) -> Dict[str, np.ndarray]:
        """Percentages, one a seed, by the epoch after which they are found, or "training"."""
        return accuracy.by_what(
            self._results[training]
            for training in trainings(self._arguments)
            if (training.method, training.workers) == (method, workers)
        )


def configuration(arguments: argparse.Namespace) -> List[str]:
    iterations = arguments.epochs * accuracy.split(0).steps(BATCH)
    return [
        "# Accuracy with Slim-DP",
        "",
        f"Made by `{command('slim_accuracy.py')}`.",
        "",
        "LeNet (gluon_models/lenet.py) on scikit-learn's handwritten digits: percentages of test",
        "images that the global parameters recognise, differences in points from plain data",
        "parallelism with the same seed, and percentages of the training images; means over the",
        "seeds, with 95 % intervals (t distribution).",
        "",
        accuracy.seeds_and_split(arguments.seeds),
        "  test, the first parameters, the order of the examples and the explorers.",
        f"- {iterations} steps, {arguments.epochs} epochs; {BATCH} images a step, shared out to K"
        " workers. SGD on each worker, with",
        f"  momentum {MOMENTUM}, weight decay {WEIGHT_DECAY}, and a learning rate that falls from"
        f" {arguments.rate} to zero with the power {POWER}.",
        f"- A round after every step (p = 1), a new core every {arguments.q} rounds (q),"
        " all else by default;",
        "  lines that name none of the shares have (0.3, 0.15), and change what they name.",
        "- Plain data parallelism is alpha = beta = 1; quantized is the paper's Quant-DP: gradients"
        " of 8 bits in buckets of 512.",
        "- Workers and servers are simulated in one process (benchmarks/simulations/),"
        " with the bits of a cluster.",
    ]


def main() -> None:
    parser = make_parser(__doc__, epochs=30, methods=METHODS)
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 8])
    # The default is what gluon_models/lenet.py has for the digits.
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate")
    parser.add_argument("--q", type=int, default=40, help="rounds from one core to the next")
    arguments = parser.parse_args()
    if PLAIN not in arguments.methods:
        parser.error(f"--methods lacks {PLAIN}, with which the others are compared")
    results = complete(arguments.results, Training, trainings(arguments))
    print(*Tables(results, arguments).lines(), sep="\n")


if __name__ == "__main__":
    main()
