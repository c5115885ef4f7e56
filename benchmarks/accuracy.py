"""What the benchmarks of accuracy with LeNet share: digits, a network, an optimizer."""
from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, Sequence, Tuple

# All happens in this thread; another one would be handed every operation only to be waited for.
os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from datasets import Dataset, digits
from gluon_models import get_model
from mxnet import gluon
from simulations.network import Batch

# Half of the images test: of 360, the share that data sets hold back, 0.5 points would be two.
TRAIN_SIZE = 896
BATCH = 64  # of all workers
WEIGHT_DECAY = 5e-4
POWER = 0.5  # of the decay of the learning rate


def split(seed: int) -> Dataset:
    """The digits, in an order and a split that follow from the seed."""
    return digits(seed, seed, TRAIN_SIZE)


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
    return mx.optimizer.SGD(momentum=momentum, **schedule(rate, iterations, batch))


def schedule(
    rate: float, iterations: int, batch: int, weight_decay: float = WEIGHT_DECAY
) -> Dict[str, Any]:
    """What any optimizer takes to be used like that."""
    return {
        "learning_rate": rate,
        "lr_scheduler": mx.lr_scheduler.PolyScheduler(iterations, base_lr=rate, pwr=POWER),
        "wd": weight_decay,
        "rescale_grad": 1 / batch,
    }


def steps(
    data: Dataset, workers: int, epoch: int, batch: int = BATCH
) -> Iterator[Tuple[Batch, ...]]:
    """An epoch's batches: each step has one a worker."""
    return zip(*(data.train(epoch, batch, rank, workers) for rank in range(workers)))


def percentage(network: gluon.Block, batches: Iterator[Batch]) -> float:
    """Of images that are recognised."""
    right = [
        network(mx.nd.array(images)).asnumpy().argmax(axis=1) == labels
        for images, labels in batches
    ]
    return 100 * float(np.mean(np.concatenate(right)))


Found = Dict[str, float]  # percentages, by what they are of


def by_what(found: Iterable[Found]) -> Dict[str, np.ndarray]:
    """Percentages, one a training, by what they are of."""
    rows = list(found)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
