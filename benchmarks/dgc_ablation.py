#!/usr/bin/env python3
r"""What each step of deep gradient compression costs in accuracy: tables in Markdown.

    OMP_NUM_THREADS=1 python benchmarks/dgc_ablation.py --results dgc.jsonl \
        > benchmarks/dgc_ablation.md

The training is that of compression_accuracy.py, in which one thing at a time is changed. The
command can be ended and called again at any time (trainings.py).
"""
from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional

import accuracy
import compression_accuracy
import mxnet as mx
import numpy as np
from accuracy import BATCH, WEIGHT_DECAY, Found
from compression_accuracy import BASE_RATES, EVALUATED, WARMUP_EPOCHS, sections
from intervals import compared, interval, shown
from kvstore_ext.compression import Compression, parse
from mxnet import gluon
from simulations.gradients import Simulation
from trainings import command, complete, make_parser

FLOAT = "floats"
DECAY = "1 %, decay without momentum"
NOT_MASKED = ", not masked"
CLIP = 16.0
# By what is changed of `1 %`: options, and warmup_epochs.
METHODS: Dict[str, Dict[str, Any]] = {
    "1 %": {},
    f"1 %{NOT_MASKED}": {"momentum_masking": False},
    DECAY: {},
    "1 %, no warm-up": {"warmup_epochs": 0},
    "1 %, warm-up of 16 epochs": {"warmup_epochs": 16},
    "1 %, clipped": {"clip_norm": CLIP},
    "0.1 %": {"ratio": 0.001},
    f"0.1 %{NOT_MASKED}": {"ratio": 0.001, "momentum_masking": False},
    "10 %": {"ratio": 0.1},
    f"10 %{NOT_MASKED}": {"ratio": 0.1, "momentum_masking": False},
    "100 %": {"ratio": 1.0},
    f"100 %{NOT_MASKED}": {"ratio": 1.0, "momentum_masking": False},
}


@dataclass(frozen=True)
class Training(compression_accuracy.Training):
    """With other methods."""

    def _simulation(
        self, network: gluon.Block, optimizer: mx.optimizer.Optimizer, steps_per_epoch: int
    ) -> Simulation:
        simulation = super()._simulation(network, optimizer, steps_per_epoch)
        if self.method == DECAY:
            optimizer.wd = WEIGHT_DECAY
        return simulation

    def _compression(self, steps_per_epoch: int) -> Optional[Compression]:
        if self.method == FLOAT:
            return None
        options = {"ratio": 0.01, "momentum_masking": True, "warmup_epochs": WARMUP_EPOCHS,
                   **METHODS[self.method]}
        options["warmup_rounds"] = options.pop("warmup_epochs") * steps_per_epoch
        return parse({"type": "dgc", **options})


def trainings(arguments: argparse.Namespace) -> Iterator[Training]:
    """All that the command asks for, seed by seed."""
    for seed in arguments.seeds:
        for momentum in BASE_RATES:
            for method in [FLOAT, *methods_of(arguments, momentum)]:
                workers = 1 if method == FLOAT else arguments.workers
                yield Training(method, workers, momentum, seed, arguments.epochs)


def methods_of(arguments: argparse.Namespace, momentum: float) -> List[str]:
    """Those that change something with this momentum."""
    return [
        method
        for method in arguments.methods
        if momentum or not (method == DECAY or method.endswith(NOT_MASKED))
    ]


def share_of(method: str) -> str:
    """The method that it is a change of."""
    return method.split(",")[0]


class Tables:
    """Markdown, of the trainings that a command asks for."""

    def __init__(self, results: Dict[Training, Found], arguments: argparse.Namespace) -> None:
        self._results, self._arguments = results, arguments

    def lines(self) -> Iterator[str]:
        yield from configuration(self._arguments)
        yield from sections(self._table)
        yield ""
        yield "It does not show other networks, other learning rates, or longer trainings, in which"
        yield "an element is sent more often. Masked, 100 % is SGD without momentum at the learning"
        yield "rate of that with it: its loss is one of speed, which a higher rate may win back."

    def _table(self, momentum: float) -> Iterator[str]:
        yield "| | " + " | ".join(EVALUATED) + " | of the training images |"
        yield "| --- |" + " ---: |" * (len(EVALUATED) + 1)
        floats = self._of_seeds(FLOAT, momentum)
        cells = " | ".join(f"{interval(floats[name])} %" for name in EVALUATED)
        yield f"| {FLOAT} | {cells} | {np.mean(floats['training']):.2f} % |"
        final = {}
        for method in methods_of(self._arguments, momentum):
            found = self._of_seeds(method, momentum)
            differences = [found[name] - floats[name] for name in EVALUATED]
            final[method] = differences[0]
            cells = " | ".join(interval(each, "+") for each in differences)
            yield f"| {method} | {cells} | {np.mean(found['training']):.2f} % |"
        yield ""
        yield f"Less floats, {EVALUATED[0]}: {shown(final)}"
        changes = {
            method: difference - final[share_of(method)]
            for method, difference in final.items()
            if method != share_of(method) and share_of(method) in final
        }
        if changes:
            yield ""
            yield compared("Less the same share without the change", changes)

    def _of_seeds(self, method: str, momentum: float) -> Dict[str, np.ndarray]:
        """Percentages, one a seed, by what they are of."""
        return accuracy.by_what(
            self._results[training]
            for training in trainings(self._arguments)
            if (training.method, training.momentum) == (method, momentum)
        )


def configuration(arguments: argparse.Namespace) -> List[str]:
    iterations = arguments.epochs * accuracy.split(0).steps(BATCH)
    return [
        "# What each step of deep gradient compression costs",
        "",
        f"Made by `{command('dgc_ablation.py')}`.",
        "",
        "LeNet on scikit-learn's handwritten digits, as in compression_accuracy.md: percentages of",
        "test images that are recognised with floats, and differences in points from them with the",
        "same seed; means over the seeds, with 95 % intervals (t distribution).",
        "",
        accuracy.seeds_and_split(arguments.seeds),
        "  test, the first parameters and the order of the examples.",
        f"- {iterations} steps, {arguments.epochs} epochs; {arguments.workers} workers.",
        f"- `1 %` sends this share of the elements after a warm-up of {WARMUP_EPOCHS} epochs, as"
        " the paper does (Lin et al., ICLR",
        "  2018), momentum correction and momentum factor masking included. The other lines change"
        " what they",
        f"  name; the store's default is `0.1 %{NOT_MASKED}`, without a warm-up.",
        f"- `clipped` clips each layer's gradient at {CLIP:g}, over the square root of the number"
        " of workers on each;",
        f"  it is the sum over a worker's {BATCH // arguments.workers} images.",
    ]


def main() -> None:
    parser = make_parser(__doc__, epochs=60, methods=METHODS)
    parser.add_argument("--workers", type=int, default=4)
    arguments = parser.parse_args()
    results = complete(arguments.results, Training, trainings(arguments))
    print(*Tables(results, arguments).lines(), sep="\n")


if __name__ == "__main__":
    main()
