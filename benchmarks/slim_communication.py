#!/usr/bin/env python3
"""How much communication time Slim-DP saves, as the paper's table 1 counts it: without computing.

    python tools/launch.py -n 4 -s 4 python benchmarks/slim_communication.py vgg16

To be started on hosts, or network namespaces, whose links are as slow as wanted. Each store in turn
exchanges a model's parameters, all keys at a time, and every worker waits for all of them. The
seconds are those of a round, taking out and merging included, the median of the rounds and the
largest of the workers. `plain` is p3, whose servers add whole updates; `alpha = beta = 1` is the
same by Slim-DP's way.
"""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from gluon_models import get_model

# The paper's shares (section 4.2).
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


def measure(options: Dict[str, Any], shapes: List[Tuple[int, ...]], rounds: int) -> float:
    """Seconds of a round, the largest of all workers."""
    store = mx.kv.create("p3")
    if options:
        store.set_gradient_compression({"type": "slim_dp", **options})
        store.set_optimizer(NoUpdate())
    arrays = [mx.nd.random.normal(scale=0.01, shape=shape) for shape in shapes]
    for key, array in enumerate(arrays):
        store.broadcast(key, array, out=array)
    mx.nd.waitall()
    seconds = []
    for _ in range(2 + rounds):
        store._barrier()
        begun = time.perf_counter()
        for key, array in enumerate(arrays):
            store.pushpull(key, array, out=array, priority=-key)
        mx.nd.waitall()
        seconds.append(time.perf_counter() - begun)
    result = mx.nd.zeros((store.num_workers,))
    own = mx.nd.zeros((store.num_workers,))
    own[store.rank] = float(np.median(seconds[2:]))
    gather = mx.kv.create("p3")
    gather.broadcast(0, result, out=result)
    gather.pushpull(0, own, out=result)
    found = float(result.asnumpy().max())
    if store.rank == 0:
        print(f"{options or 'plain'}: {found:.3f} s a round; {np.round(seconds, 3)}", flush=True)
    gather.close()
    store.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=list(SHARES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=2)
    arguments = parser.parse_args()
    shapes = shapes_of(arguments.model)
    alpha, beta = SHARES[arguments.model]
    anchor = mx.kv.create("p3")  # a job ends with its last store
    for _ in range(arguments.repeat):
        plain = measure({}, shapes, arguments.rounds)
        whole = measure({"alpha": 1, "beta": 1}, shapes, arguments.rounds)
        slim = measure({"alpha": alpha, "beta": beta}, shapes, arguments.rounds)
        if anchor.rank == 0:
            print(
                f"{arguments.model}, alpha {alpha}, beta {beta}: saved {1 - slim / plain:.1%} of "
                f"plain's time, {1 - slim / whole:.1%} of that with alpha = beta = 1",
                flush=True,
            )
    anchor.close()


if __name__ == "__main__":
    main()
