#!/usr/bin/env python3
"""What a trace costs: processor time of rounds of ResNet-50's keys, traced and not, in turn.

    OMP_NUM_THREADS=1 python benchmarks/trace_cost.py

Worker and server are in this process, and nothing is computed or goes through a network: what is
measured is the lane alone. Beside it stands what that is of a step of the replay's worker, which
computes for 32 images as long as on a Quadro P4000.
"""
from __future__ import annotations

import argparse
import tempfile
import time
from statistics import median
from typing import Any, List, Tuple

import kvstore_ext  # noqa: F401
import mxnet as mx
from kvstore_ext.predict.network import load
from kvstore_ext.trace.reading import read

ROUNDS = 3  # between two looks at the clock

Keys = List[Tuple[mx.nd.NDArray, mx.nd.NDArray]]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    network = load("resnet50")
    sizes = [size for layer in network.layers for size in layer.parameters.values()]
    store = mx.kv.create("p3")
    keys = [(mx.nd.ones((size,)), mx.nd.ones((size,))) for size in sizes]
    for number, (value, _) in enumerate(keys):
        store.init(number, value)
    processor_time(store, keys)
    plain, traced, events = [], [], 0.0
    for _ in range(repeats):
        plain.append(processor_time(store, keys))
        with tempfile.TemporaryDirectory() as directory:
            store.start_trace(directory)
            traced.append(processor_time(store, keys))
            store.stop_trace()
            events = sum(len(process.events) for process in read(directory).processes) / ROUNDS
    more = median(traced) - median(plain)
    step = network.compute
    print(f"{len(sizes)} keys, {events:.0f} events a round, of worker and server together")
    print(f"a round takes {1e3 * median(plain):.1f} ms of processor time, and traced "
          f"{1e3 * median(traced):.1f} ms: {1e9 * more / events:.0f} ns an event")
    print(f"that is {100 * more / step:.2f} % of a step that computes for {1e3 * step:.0f} ms")


def processor_time(store: Any, keys: Keys) -> float:
    """Seconds of a round, of all threads."""
    mx.nd.waitall()
    begun = time.process_time()
    for _ in range(ROUNDS):
        for number, (value, gradient) in enumerate(keys):
            store.pushpull(number, gradient, out=value, priority=-number)
        mx.nd.waitall()
    return (time.process_time() - begun) / ROUNDS


if __name__ == "__main__":
    main()
