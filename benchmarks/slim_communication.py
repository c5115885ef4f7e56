#!/usr/bin/env python3
"""How much communication time Slim-DP saves, as the paper's table 1 counts it: without computing.

    python tools/launch.py -n 4 -s 4 python benchmarks/slim_communication.py vgg16

To be started on hosts, or network namespaces, whose links are as slow as wanted. Each store in turn
exchanges a model's parameters, all keys at a time, and every worker waits for all of them. The
seconds are those of a round, taking out and merging included, the median of the rounds and the
largest of the workers. `plain` is p3, whose servers add whole updates; `all` is the same by
Slim-DP's way, alpha = beta = 1; with `indices` the explorer's travel as in the paper. With
--interface the bytes that rank 0's host sends and receives in a round are shown beside what its
elements come to: with a worker and a server on every host, both ways.
"""
from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from gluon_models import get_model

# The paper's shares (section 4.2).
METHODS = ["plain", "all", "slim", "indices"]
SHARES: Dict[str, Tuple[float, float]] = {"googlenet": (0.3, 0.15), "vgg16": (0.2, 0.1)}


class NoUpdate(mx.optimizer.Optimizer):
    """Leaves parameters as they are: what it would cost is no communication."""

    def create_state(self, index: Any, weight: mx.nd.NDArray) -> None:
        """None."""

    def update(self, index: Any, weight: mx.nd.NDArray, grad: Any, state: Any) -> None:
        """Nothing."""


def shapes_of(model: str) -> List[Tuple[int, ...]]:
    """Of the parameters that have gradients."""
    network = get_model(model, classes=1000)
    network.infer_shape(mx.nd.zeros((1, 3, 224, 224)))
    return [p.shape for p in network.collect_params().values() if p.grad_req != "null"]


def counters(interface: str) -> np.ndarray:
    """Bytes that a network interface has sent and received."""
    statistics = Path("/sys/class/net", interface, "statistics")
    return np.array([int((statistics / f"{way}_bytes").read_text()) for way in ("tx", "rx")])


class Measurement:
    """Rounds of one store."""

    def __init__(self, options: Dict[str, Any], arguments: argparse.Namespace) -> None:
        store = mx.kv.create("p3")
        if options:
            store.set_gradient_compression({"type": "slim_dp", **options})
            store.set_optimizer(NoUpdate())
        arrays = [mx.nd.random.normal(scale=0.01, shape=s) for s in shapes_of(arguments.model)]
        for key, array in enumerate(arrays):
            store.broadcast(key, array, out=array)
        mx.nd.waitall()
        seconds = []
        before = np.zeros(2, int)
        for number in range(2 + arguments.rounds):
            store._barrier()
            if arguments.interface and number == 2:
                before = counters(arguments.interface)
            begun = time.perf_counter()
            for key, array in enumerate(arrays):
                store.pushpull(key, array, out=array, priority=-key)
            mx.nd.waitall()
            seconds.append(time.perf_counter() - begun)
        self.series = np.round(seconds, 3)
        self.seconds = self._largest(float(np.median(seconds[2:])), store)
        if arguments.interface:
            store._barrier()
            bytes_ = (counters(arguments.interface) - before) / arguments.rounds
            elements = sum(array.size for array in arrays)
            # A host's share of the servers is its own worker's neighbour.
            self.share = bytes_ / (2 * 4 * elements * (1 - 1 / store.num_workers))
        store.close()

    @staticmethod
    def _largest(value: float, store: Any) -> float:
        values, own = mx.nd.zeros((store.num_workers,)), mx.nd.zeros((store.num_workers,))
        own[store.rank] = value
        other = mx.kv.create("p3")
        other.broadcast("seconds", values, out=values)
        other.pushpull("seconds", own, out=values)
        largest = float(values.asnumpy().max())
        other.close()
        return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=list(SHARES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--interface", help="of the hosts' network, eth0")
    arguments = parser.parse_args()
    alpha, beta = SHARES[arguments.model]
    options: Dict[str, Dict[str, Any]] = {
        "plain": {},
        "all": {"alpha": 1, "beta": 1},
        "slim": {"alpha": alpha, "beta": beta},
        "indices": {"alpha": alpha, "beta": beta, "explorer": "keys"},
    }
    anchor = mx.kv.create("p3")  # a job ends with its last store
    for _ in range(arguments.repeat):
        found = {}
        for name in arguments.methods:
            found[name] = Measurement(options[name], arguments)
            if anchor.rank == 0:
                share = f", {found[name].share} of all elements" if arguments.interface else ""
                print(f"{name}: {found[name].seconds:.3f} s a round{share}; "
                      f"{found[name].series}", flush=True)
        if anchor.rank == 0 and {"plain", "slim"} <= set(found):
            saved = 1 - found["slim"].seconds / found["plain"].seconds
            print(f"{arguments.model}, alpha {alpha}, beta {beta}: saved {saved:.1%}", flush=True)
    anchor.close()


if __name__ == "__main__":
    main()
