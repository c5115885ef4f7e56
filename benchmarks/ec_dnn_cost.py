#!/usr/bin/env python3
"""What relabelling costs in EC-DNN: its time beside K forward passes over the same examples.

    OMP_NUM_THREADS=1 python benchmarks/ec_dnn_cost.py

Workers are simulated (simulations/ec_dnn.py); seconds are what worker 0's thread computes. Forward
passes are timed right after each round, so that a busy machine slows both down.
"""
from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any, List, Tuple

if __name__ == "__main__":  # then everything a worker computes, its own thread does
    os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from gluon_models import get_model
from kvstore_ext import ec_dnn
from simulations.ec_dnn import SimulatedStore, run

# Network, images, examples of a worker.
CASES = {"nin_digits": ((1, 8, 8), 448), "nin": ((3, 32, 32), 64)}
BATCH = 256  # as in relabelling


def measure(
    store: SimulatedStore, model: str, method: ec_dnn.Method, rounds: int
) -> List[Tuple[float, float, float]]:
    """Of each round: seconds of relabelling, of K forward passes, and of the whole round."""
    shape, count = CASES[model]
    random, workers = np.random.RandomState(store.rank), store.num_workers
    inputs = random.normal(size=(count, *shape)).astype(np.float32)
    network = get_model(model, classes=10)
    network.initialize(mx.init.MSRAPrelu("in", 0))
    network.hybridize(static_alloc=True, static_shape=True)
    trainer = ec_dnn.Trainer(
        network, (inputs, random.randint(0, 10, count)), "sgd", {"learning_rate": 0.001},
        method=method, store=store, batch_size=16, clock=time.thread_time,
    )
    found = []
    for report in trainer.rounds(rounds):
        forward = sum(forward_pass(network, inputs[: report.relabelled]) for _ in range(workers))
        found.append((report.seconds["relabel"], forward, report.training_seconds))
    return found


def forward_pass(network: Any, inputs: np.ndarray) -> float:
    """Seconds of a model that has just arrived: oneDNN first brings its weights into its layout."""
    for parameter in network.collect_params().values():
        parameter.data().copy().copyto(parameter.data())
    begun = time.thread_time()
    for first in range(0, len(inputs), BATCH):
        network(mx.nd.from_numpy(inputs[first : first + BATCH])).wait_to_read()
    return time.thread_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--tau", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--models", nargs="+", default=list(CASES), choices=list(CASES))
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error(f"--rounds is {arguments.rounds}: it has to be 2 or more, as the first is not "
                     "counted")
    print("| network | method | tau | relabelling, ms | K forward passes, ms | ratio | share |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for model in arguments.models:
        for name in ("ec_dnn_s", "ec_dnn_r", "ec_dnn_m"):
            for tau in arguments.tau:
                method = ec_dnn.Method(name, tau=tau)

                def work(
                    store: SimulatedStore, model: str = model, method: ec_dnn.Method = method
                ) -> List[Tuple[float, float, float]]:
                    return measure(store, model, method, arguments.rounds)

                # The first round makes oneDNN's operators.
                rows = run(arguments.workers, work)[0][1:]
                relabel, forward, whole = (1e3 * statistics.median(part) for part in zip(*rows))
                ratio = statistics.median(row[0] / row[1] for row in rows)
                print(f"| {model} | {name} | {tau} | {relabel:.1f} | {forward:.1f} | {ratio:.2f} | "
                      f"{relabel / whole:.1%} |", flush=True)


if __name__ == "__main__":
    main()
