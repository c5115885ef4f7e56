"""What the benchmarks of accuracy share: LeNet on digits, results in a file, means in tables.

The file of results gets a line after each training; what stands in it is not trained again, so that
a benchmark can be ended and called again at any time.
"""
from __future__ import annotations

import json
import os
import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Sequence, Tuple, Type, TypeVar

# All happens in this thread; another one would be handed every operation only to be waited for.
os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from datasets import Dataset, digits
from gluon_models import get_model
from mxnet import gluon
from scipy import stats
from simulations.network import Batch

# Half of the images test: of 360, the share that data sets hold back, 0.5 points would be two.
TRAIN_SIZE = 896
BATCH = 64  # of all workers
WEIGHT_DECAY = 5e-4
POWER = 0.5  # of the decay of the learning rate


def split(seed: int) -> Dataset:
    """The digits, in an order and a split that follow from the seed."""
    return digits(seed, seed, TRAIN_SIZE)


def origin(script: str) -> str:
    """The sentence that says by which command a benchmark's tables were made."""
    command = shlex.join(["python", f"benchmarks/{script}", *sys.argv[1:]])
    return f"Made by `{command}`."


def seeds_and_split(seeds: Sequence[int]) -> str:
    """The line that says what follows from the seeds, as far as all benchmarks have it."""
    data = split(0)
    held_out = sum(len(labels) for _, labels in data.validation(BATCH))
    return (
        f"- {len(seeds)} seeds, {min(seeds)} to {max(seeds)}. From each follow a split into"
        f" {data.train_size} images to train on and {held_out} to"
    )


def make_network(data: Dataset, seed: int) -> gluon.HybridBlock:
    """LeNet, with first parameters that follow from the seed."""
    mx.random.seed(seed)
    network = get_model("lenet", classes=data.classes)
    network.infer_shape(mx.nd.zeros((1, *data.image_shape)))
    network.initialize(mx.init.Xavier())
    network.hybridize(static_alloc=True, static_shape=True)
    return network


def make_optimizer(
    rate: float, momentum: float, iterations: int, batch: int
) -> mx.optimizer.Optimizer:
    """SGD whose learning rate falls to zero, for gradients that are summed over a batch."""
    return mx.optimizer.SGD(
        momentum=momentum,
        learning_rate=rate,
        lr_scheduler=mx.lr_scheduler.PolyScheduler(iterations, base_lr=rate, pwr=POWER),
        wd=WEIGHT_DECAY,
        rescale_grad=1 / batch,
    )


def steps(data: Dataset, workers: int, epoch: int) -> Iterator[Tuple[Batch, ...]]:
    """An epoch's batches: each step has one a worker."""
    return zip(*(data.train(epoch, BATCH, rank, workers) for rank in range(workers)))


def percentage(network: gluon.Block, batches: Iterator[Batch]) -> float:
    """Of images that are recognised."""
    right = [
        network(mx.nd.array(images)).asnumpy().argmax(axis=1) == labels
        for images, labels in batches
    ]
    return 100 * float(np.mean(np.concatenate(right)))


Found = Dict[str, float]  # percentages, by what they are of
Training = TypeVar("Training")  # a dataclass with run(), which returns what is found


def complete(file: Path, kind: Type[Training], wanted: Iterable[Training]) -> Dict[Training, Found]:
    """Runs those of the wanted trainings that the file lacks; it may not exist."""
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    results: Dict[Training, Found] = {kind(**row["training"]): row["found"] for row in rows}
    for training in wanted:
        if training not in results:
            results[training] = _run(training, file)
    return results


def _run(training: Any, file: Path) -> Found:
    begun = time.process_time()
    found: Found = training.run()
    row = {"training": asdict(training), "found": found}
    with file.open("a") as lines:
        lines.write(json.dumps(row) + "\n")
    print(f"{time.process_time() - begun:.1f} s of CPU: {row}", file=sys.stderr, flush=True)
    return found


def by_what(found: Iterable[Found]) -> Dict[str, np.ndarray]:
    """Percentages, one a training, by what they are of."""
    rows = list(found)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def interval(values: np.ndarray, sign: str = "") -> str:
    """The mean, and half the length of its 95 % interval (t distribution)."""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):{sign}.2f} ± {half:.2f}"
