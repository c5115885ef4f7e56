#!/usr/bin/env python3
"""What --secure costs: processor seconds a gigabyte that travels, in jobs that take turns.

    python benchmarks/secure_cost.py --repeats 3

A worker and a server of this machine exchange 16 MB each way a step, with p3 and without an
optimizer. Prints the processor seconds of both processes, all threads, for each gigabyte (10**9
bytes) that was sent either way, and how many of these travelled in a second.
"""
from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Tuple

from launched import in_turns, measured, processor_seconds

ELEMENTS, KEYS = 1_000_000, 4
ARMS = ("open", "secure")


def work(steps: int) -> None:
    """The worker."""
    import kvstore_ext  # noqa: F401 - makes the store's name known
    import mxnet as mx

    store = mx.kv.create("p3")
    gradients = [mx.nd.ones((ELEMENTS,)) for _ in range(KEYS)]
    weights = [mx.nd.zeros((ELEMENTS,)) for _ in range(KEYS)]
    for key, weight in enumerate(weights):
        store.broadcast(key, weight, out=weight)

    def run(count: int) -> None:
        for _ in range(count):
            for key, weight in enumerate(weights):
                store.pushpull(key, gradients[key], out=weight, priority=-key)
            mx.nd.waitall()

    run(5)
    used, begun, moved = processor_seconds(), time.perf_counter(), traffic(store)
    run(steps)
    seconds = time.perf_counter() - begun
    gigabytes = (traffic(store) - moved) / 1e9
    print(f"cost {(processor_seconds() - used) / gigabytes} {gigabytes / seconds}", flush=True)


def traffic(store: object) -> int:
    stats = store.stats()  # type: ignore[attr-defined]
    return sum(stats["sent"].values()) + sum(stats["received"].values())


def cost(arm: str, steps: int) -> Tuple[float, float]:
    """Runs a job; returns processor seconds a gigabyte, and gigabytes a second."""
    secure = ["--secure"] if arm == "secure" else []
    # Of one host, they would exchange all of it without a network.
    variables = {"KVSTORE_EXT_OPTIONS": '{"shared_memory": false}'}
    worker = [__file__, "--work", "--steps", str(steps)]
    seconds, speed = measured("cost", ["-n", "1", *secure], worker, variables=variables)
    return seconds, speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="jobs of each kind; default: 3")
    parser.add_argument("--steps", type=int, default=60, help="of each job; default: 60")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work(arguments.steps)
    found = in_turns(ARMS, arguments.repeats, lambda arm: cost(arm, arguments.steps))
    for arm, jobs in found.items():
        each = " ".join(f"{seconds:.2f}" for seconds, _ in jobs)
        speed = median(speed for _, speed in jobs)
        seconds = median(seconds for seconds, _ in jobs)
        print(f"{arm:6} {seconds:.2f} processor seconds a GB ({each}), {speed:.2f} GB/s")
    more = median(s[0] - o[0] for s, o in zip(found["secure"], found["open"]))
    print(f"--secure costs {more:.2f} processor seconds a GB more")
    return None


if __name__ == "__main__":
    main()
