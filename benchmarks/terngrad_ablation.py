#!/usr/bin/env python3
r"""TernGrad without one of its parts, and with other limits of clipping: a table in Markdown.

    OMP_NUM_THREADS=1 python benchmarks/terngrad_ablation.py --results ablation.jsonl \
        > benchmarks/terngrad_ablation.md

After sections 3.1 and 3.3 and figure 4(c) of the paper (Wen et al., NeurIPS 2017), with
scikit-learn's digits. Workers and servers are simulated (simulations/gradients.py). The command can
be ended and called again at any time (trainings.py).
"""
from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List

import accuracy
import numpy as np
from accuracy import BATCH, POWER, WEIGHT_DECAY, Found
from intervals import interval, shown
from kvstore_ext import _core
from kvstore_ext.compression import parse
from simulations.gradients import CompressedRounds, Simulation
from trainings import command, complete, make_parser

MOMENTUM, RATE = 0.9, 0.01
FLOAT = "floats"
PARTS = 5  # of the training, for each of which the share of zeros is told
METHODS: Dict[str, Dict[str, Any]] = {
    "c = 2.5, the default": {},
    "c = 1": {"clip_sigma": 1},
    "c = 2": {"clip_sigma": 2},
    "c = 3": {"clip_sigma": 3},
    "c = 4": {"clip_sigma": 4},
    "not clipped": {"clip_sigma": 0},
    "each worker its scaler": {"scaler_sharing": False},
    "one scaler for the model": {"together": True},
    "one scaler for the model, not clipped": {"together": True, "clip_sigma": 0},
}


class WatchedRounds(CompressedRounds):
    """What clipping and rounding make of gradients, added up since `take` was called."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._decoder = _core.Codec(arguments[0].specification(arguments[3]), arguments[1])
        self._seen = np.zeros(5)

    def sent(self, gradient: np.ndarray, scaler: float, data: bytes) -> None:
        """Elements, zeros; of the gradient and of the clipped one: squares, and their product."""
        decoded = np.zeros(gradient.size, np.float32)
        self._decoder.add_to(decoded, data)
        clipped = np.clip(gradient, -scaler, scaler).astype(np.float64)
        self._seen += (
            decoded.size, decoded.size - np.count_nonzero(decoded),
            np.square(gradient, dtype=np.float64).sum(), np.square(clipped).sum(),
            (gradient * clipped).sum(),
        )

    def take(self) -> np.ndarray:
        """The sums, which begin anew."""
        seen, self._seen = self._seen, np.zeros(5)
        return seen


@dataclass(frozen=True)
class Training:
    """The split, the first parameters, the order of the examples and random rounding follow from
    the seed."""

    method: str
    workers: int
    seed: int
    epochs: int

    def run(self) -> Found:
        """Trains; returns the percentage of test images that are recognised; of a compression also
        how many per cent of elements are zero in each part of the training, and by how many per
        cent and degrees clipping changes the gradient's length and direction."""
        data = accuracy.split(self.seed)
        network = accuracy.make_network(data, self.seed)
        steps = data.steps(BATCH)
        optimizer = accuracy.make_optimizer(RATE, MOMENTUM, self.epochs * steps, BATCH)
        simulation = self._simulation(network, optimizer)
        parts: List[np.ndarray] = []  # by layer, what is seen in a part of the training
        for epoch in range(1, self.epochs + 1):
            for batches in accuracy.steps(data, self.workers, epoch):
                simulation.step(batches)
            if epoch * PARTS // self.epochs > len(parts):
                parts.append(np.array(
                    [key.take() for key in simulation.keys if isinstance(key, WatchedRounds)]))
        found = {"accuracy": accuracy.percentage(network, data.validation(BATCH))}
        return found if self.method == FLOAT else {**found, **changes(parts)}

    def _simulation(self, network: Any, optimizer: Any) -> Simulation:
        if self.method == FLOAT:
            return Simulation(network, optimizer, self.workers)
        options = dict(METHODS[self.method])
        together = options.pop("together", False)
        method = parse({"type": "terngrad", "seed": self.seed, **options})
        return Simulation(
            network, optimizer, self.workers, method, rounds=WatchedRounds, together=together)


def changes(parts: List[np.ndarray]) -> Found:
    """Shares of zeros by part, and the change by clipping."""
    found = {
        f"zeros {i}": 100 * part[:, 1].sum() / part[:, 0].sum() for i, part in enumerate(parts, 1)
    }
    _, _, squares, clipped, product = np.sum(parts, axis=(0, 1))
    found["length"] = 100 * (1 - math.sqrt(clipped / squares))
    found["direction"] = math.degrees(math.acos(min(1, product / math.sqrt(squares * clipped))))
    return found


def trainings(arguments: argparse.Namespace) -> Iterator[Training]:
    """All that the command asks for; floats are the same for any number of workers."""
    for seed in arguments.seeds:
        for method in (FLOAT, *arguments.methods):
            workers = 1 if method == FLOAT else arguments.workers
            yield Training(method, workers, seed, arguments.epochs)


class Table:
    """Markdown, of the trainings that a command asks for."""

    def __init__(self, results: Dict[Training, Found], arguments: argparse.Namespace) -> None:
        self._results, self._arguments = results, arguments

    def lines(self) -> Iterator[str]:
        floats = self._of_seeds(FLOAT)["accuracy"]
        yield from configuration(self._arguments)
        yield from ("", f"Floats: {interval(floats)} %.", "")
        yield "| TernGrad | less floats | length | direction | zeros |"
        yield "| --- |" + " ---: |" * 4
        differences = {}
        for method in self._arguments.methods:
            found = self._of_seeds(method)
            differences[method] = found["accuracy"] - floats
            zeros = [f"{np.mean(found[f'zeros {part}']):.1f}" for part in range(1, PARTS + 1)]
            cells = [
                interval(differences[method], "+"),
                f"{-np.mean(found['length']):.2f} %",
                f"{np.mean(found['direction']):.2f}°",
                ", ".join(zeros) + " %",
            ]
            yield f"| {method} | " + " | ".join(cells) + " |"
        yield ""
        yield f"Less floats: {shown(differences)}"
        yield "It does not show networks in whose layers gradients differ in size as much as in the"
        yield "paper's, nor one whose last layer travels as floats."

    def _of_seeds(self, method: str) -> Dict[str, np.ndarray]:
        """What is found, one a seed."""
        return accuracy.by_what(
            self._results[training]
            for training in trainings(self._arguments)
            if training.method == method
        )


def configuration(arguments: argparse.Namespace) -> List[str]:
    iterations = arguments.epochs * accuracy.split(0).steps(BATCH)
    return [
        "# TernGrad's parts",
        "",
        f"Made by `{command('terngrad_ablation.py')}`.",
        "",
        "LeNet (gluon_models/lenet.py) on scikit-learn's handwritten digits: points of accuracy",
        "that TernGrad adds to floats with the same seed, means over the seeds with 95 % intervals",
        "(t distribution); by how much clipping changes the gradient's length and direction; and",
        f"the share of elements that travel as 0 in each of {PARTS} equal parts of the training.",
        "",
        accuracy.seeds_and_split(arguments.seeds),
        "  test, the first parameters, the order of the examples and random rounding.",
        f"- {arguments.workers} workers, which are simulated (benchmarks/simulations/gradients.py);"
        f" {BATCH} images a step, shared out.",
        f"- {iterations} steps of SGD with momentum {MOMENTUM}; weight decay {WEIGHT_DECAY}; a"
        f" learning rate that falls",
        f"  from {RATE} to zero with the power {POWER}.",
        "- c is in standard deviations of a layer's gradient (equation 21). With one scaler for",
        "  the model, all gradients are clipped and scaled as one vector.",
        "- Length and direction are those of all layers' gradients as one vector, over the whole",
        "  training. The paper has 1 to 1.5 % and 2 to 3 degrees with c = 2.5, for Gaussian ones.",
    ]


def main() -> None:
    parser = make_parser(__doc__, epochs=60, methods=METHODS)
    parser.add_argument("--workers", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.epochs < PARTS:
        parser.error(f"--epochs {arguments.epochs}: {PARTS} or more, for the table's parts")
    results = complete(arguments.results, Training, trainings(arguments))
    print(*Table(results, arguments).lines(), sep="\n")


if __name__ == "__main__":
    main()
