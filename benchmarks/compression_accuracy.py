#!/usr/bin/env python3
r"""How accurate a network gets with compressed gradients, compared with floats: tables in Markdown.

    OMP_NUM_THREADS=1 python benchmarks/compression_accuracy.py --results accuracy.jsonl \
        > benchmarks/compression_accuracy.md

After figure 3 of the TernGrad paper (Wen et al., NeurIPS 2017, section 4.1), with scikit-learn's
digits for MNIST. Workers and servers are simulated (simulation.py). The file of results gets a line
after each training; what stands in it is not trained again, so that the command can be ended and
called again at any time.
"""
from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

# All happens in this thread; another one would be handed every operation only to be waited for.
os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from datasets import Dataset, digits
from gluon_models import get_model
from kvstore_ext.compression import Compression, parse
from scipy import stats
from simulation import Simulation

# Half of the images test: of 360, the share that data sets hold back, 0.5 points would be two.
TRAIN_SIZE = 896
BATCH = 64  # of all workers
WEIGHT_DECAY = 5e-4
BASE_RATES = {0.9: 0.01, 0.0: 0.1}  # by momentum
POWER = 0.5  # of the decay of the learning rate
WINDOW = 0.1  # share of the iterations in which the moving average forgets all but 1/e
WARMUP_EPOCHS = 4  # of dgc, as in its paper
FLOAT = "float"
METHODS: Dict[str, Dict[str, Any]] = {
    "terngrad": {"type": "terngrad"},
    "terngrad, not clipped": {"type": "terngrad", "clip_sigma": 0},
    "qsgd": {"type": "qsgd"},
    "onebit": {"type": "onebit"},
    "dgc": {"type": "dgc", "ratio": 0.01},
}
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

    def run(self) -> Dict[str, float]:
        """Trains; returns percentages of images that are recognised."""
        data = digits(self.seed, self.seed, TRAIN_SIZE)
        steps = data.steps(BATCH)
        mx.random.seed(self.seed)
        network = get_model("lenet", classes=data.classes)
        network.infer_shape(mx.nd.zeros((1, *data.image_shape)))
        network.initialize(mx.init.Xavier())
        network.hybridize(static_alloc=True, static_shape=True)
        optimizer = make_optimizer(self.momentum, self.epochs * steps)
        simulation = Simulation(network, optimizer, self.workers, self._compression(steps))
        average = train(simulation, data, self.workers, self.epochs)
        found = {"training": accuracy(network, data.train(1, BATCH, 0, 1))}
        for name, values in zip(EVALUATED, (simulation.values(), average)):
            simulation.set_values(values)
            found[name] = accuracy(network, data.validation(BATCH))
        return found

    def _compression(self, steps_per_epoch: int) -> Optional[Compression]:
        if self.method == FLOAT:
            return None
        options = dict(METHODS[self.method])
        if options["type"] in ("terngrad", "qsgd"):
            options["seed"] = self.seed
        if options["type"] == "dgc":
            options["warmup_rounds"] = WARMUP_EPOCHS * steps_per_epoch
        return parse(options)


def make_optimizer(momentum: float, iterations: int) -> mx.optimizer.Optimizer:
    rate = BASE_RATES[momentum]
    return mx.optimizer.SGD(
        momentum=momentum,
        learning_rate=rate,
        lr_scheduler=mx.lr_scheduler.PolyScheduler(iterations, base_lr=rate, pwr=POWER),
        wd=WEIGHT_DECAY,
        rescale_grad=1 / BATCH,
    )


def train(simulation: Simulation, data: Dataset, workers: int, epochs: int) -> List[np.ndarray]:
    """Trains; returns the exponential moving average of the parameters."""
    newest = 1 / (WINDOW * epochs * data.steps(BATCH))  # the weight of the latest parameters
    average = simulation.values()
    for epoch in range(1, epochs + 1):
        shares = [data.train(epoch, BATCH, rank, workers) for rank in range(workers)]
        for batches in zip(*shares):
            simulation.step(batches)
            for mean, value in zip(average, simulation.values()):
                mean += newest * (value - mean)
    return average


def accuracy(network: Any, batches: Iterator[Tuple[Any, Any]]) -> float:
    right = [
        network(mx.nd.array(images)).asnumpy().argmax(axis=1) == labels
        for images, labels in batches
    ]
    return 100 * float(np.mean(np.concatenate(right)))


Results = Dict[Training, Dict[str, float]]


def read(file: Path) -> Results:
    """All trainings in the file, which may not exist."""
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return {Training(**row["training"]): row["found"] for row in rows}


def complete(arguments: argparse.Namespace) -> Results:
    """Runs the trainings that the file of results lacks, those with floats first."""
    results = read(arguments.results)
    for method in [FLOAT, *arguments.methods]:
        for workers in [1] if method == FLOAT else arguments.workers:
            for momentum in BASE_RATES:
                for seed in arguments.seeds:
                    training = Training(method, workers, momentum, seed, arguments.epochs)
                    if training in results:
                        continue
                    begun = time.process_time()
                    results[training] = training.run()
                    row = {"training": asdict(training), "found": results[training]}
                    with arguments.results.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    used = time.process_time() - begun
                    print(f"{used:.1f} s of CPU: {row}", file=sys.stderr, flush=True)
    return results


class Tables:
    """Markdown, of the trainings that a command asks for."""

    def __init__(self, results: Results, arguments: argparse.Namespace) -> None:
        self._results, self._arguments = results, arguments

    def lines(self) -> Iterator[str]:
        yield from configuration(self._arguments)
        for momentum in BASE_RATES:
            yield ""
            yield f"## SGD with momentum {momentum}" if momentum else "## SGD without momentum"
            yield ""
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
        for method in self._arguments.methods:
            cells = [
                interval(self._of_seeds(method, count, momentum)[name] - floats, "+")
                for count in workers
            ]
            yield f"| {method} | " + " | ".join(cells) + " |"

    def _of_seeds(self, method: str, workers: int, momentum: float) -> Dict[str, np.ndarray]:
        """Percentages, one a seed, by what they are of."""
        epochs = self._arguments.epochs
        found = [
            self._results[Training(method, workers, momentum, seed, epochs)]
            for seed in self._arguments.seeds
        ]
        return {name: np.array([each[name] for each in found]) for name in found[0]}


def interval(values: np.ndarray, sign: str = "") -> str:
    """The mean, and half the length of its 95 % interval (t distribution)."""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):{sign}.2f} ± {half:.2f}"


def configuration(arguments: argparse.Namespace) -> List[str]:
    data = digits(0, 0, TRAIN_SIZE)
    held_out = sum(len(labels) for _, labels in data.validation(BATCH))
    iterations = arguments.epochs * data.steps(BATCH)
    command = shlex.join(["python", "benchmarks/compression_accuracy.py", *sys.argv[1:]])
    return [
        "# Accuracy with compressed gradients",
        "",
        f"Made by `{command}`.",
        "",
        "LeNet (gluon_models/lenet.py) on scikit-learn's handwritten digits: what compression adds",
        "to the percentage of test images that are recognised, compared with floats and the same",
        "seed; means over the seeds, with 95 % intervals (t distribution).",
        "",
        f"- {len(arguments.seeds)} seeds, {min(arguments.seeds)} to {max(arguments.seeds)}. From"
        f" each follow a split into {data.train_size} images to train on and {held_out} to",
        "  test, the first parameters, the order of the examples and random rounding.",
        "- As in section 4.1 and figure 3 of the TernGrad paper (Wen et al., NeurIPS 2017):"
        f" {BATCH} images a",
        f"  step, shared out to N workers; weight decay {WEIGHT_DECAY}; a learning rate that falls"
        f" to zero with the",
        f"  power {POWER}, from {BASE_RATES[0.9]} with momentum and {BASE_RATES[0.0]} without.",
        f"- {iterations} steps, {arguments.epochs} epochs. The moving average of the parameters"
        f" decays by {1 - 1 / (WINDOW * iterations):.5f} a step.",
        "- Types of compression with their default options, but for dgc: it sends"
        f" {METHODS['dgc']['ratio']:.0%} of the elements",
        f"  after a warm-up of {WARMUP_EPOCHS} epochs.",
        "- Workers and servers are simulated in one process (benchmarks/simulation.py), with the"
        " bits of a cluster.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="JSON lines, one a training")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    arguments = parser.parse_args()
    print(*Tables(complete(arguments), arguments).lines(), sep="\n")


if __name__ == "__main__":
    main()
