"""EC-DNN's relabelling beside its exchange of models, one after the other and at once.

Models travel in real jobs, on hosts that are network namespaces with slow links (cluster/), which
need root. Labelling is replayed by a wait, as computing is in replay/. Every worker makes rounds of
two trainers in turn, so that what else the machine does meets both.
"""
from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Dict, List

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from kvstore_ext import ec_dnn
from mxnet import autograd, gluon

from benchmarks.cluster import Link
from benchmarks.replay.arms import ARMS
from benchmarks.replay.processes import Interpreters, run

MEGABITS = 50  # each way of each host
FEATURES, CLASSES = 100_000, 10  # a model has 4 MB
EXAMPLES = 8  # of a worker, all of which are relabelled
LABELLING = 0.5  # seconds a model
PHASES = ("exchange", "relabel")
WAYS = {"at once": True, "one after the other": False}  # whether the trainer prefetches
LIMIT = 540  # seconds


class Waiting(gluon.nn.Dense):
    """A layer that takes its time, but where it is trained."""

    def forward(self, *inputs: mx.nd.NDArray) -> mx.nd.NDArray:
        if not autograd.is_training():
            time.sleep(LABELLING)
        return super().forward(*inputs)


def measure(workers: int, rounds: int) -> Dict[str, List[float]]:
    """Seconds of exchange and relabelling in each round but the first, means of the workers, by
    WAYS. Raises JobError."""
    with Interpreters() as interpreters:
        link = Link(send=MEGABITS, receive=MEGABITS)
        found = run(
            ARMS["p3"], workers, link, "benchmarks.overlapping:work", {"rounds": rounds},
            interpreters, LIMIT)
    return {way: np.mean([worker[way] for worker in found], axis=0).tolist() for way in WAYS}


def work(settings: str, result: str) -> None:
    """A worker's part."""
    store = mx.kv.create("p3")
    count = json.loads(settings)["rounds"]
    rounds = {way: make_trainer(store, early).rounds(count) for way, early in WAYS.items()}
    seconds: Dict[str, List[float]] = {way: [] for way in rounds}
    for _ in range(count):
        for way, trainer in rounds.items():
            store._barrier()
            spent = next(trainer).seconds
            seconds[way].append(sum(spent[phase] for phase in PHASES))
    told = {way: values[1:] for way, values in seconds.items()}
    Path(result).write_text(json.dumps({"rank": store.rank, **told}))


def make_trainer(store: Any, prefetch: bool) -> ec_dnn.Trainer:
    """With the least of training between two exchanges."""
    random = np.random.RandomState(store.rank)
    inputs = random.normal(size=(EXAMPLES, FEATURES)).astype(np.float32)
    network = Waiting(CLASSES, in_units=FEATURES)
    network.initialize()
    return ec_dnn.Trainer(
        network, (inputs, random.randint(0, CLASSES, EXAMPLES)), "sgd", {"learning_rate": 1e-6},
        method=ec_dnn.Method("ec_dnn_s", tau=1, mu=1, alpha=0), store=store, batch_size=1,
        prefetch=prefetch)
