#!/usr/bin/env python3
"""Many small keys: seconds a step of p3 beside MXNet's own dist_sync, in jobs that take turns.

    python benchmarks/small_keys.py --repeats 5

A step pushes and pulls 500 keys of 100 elements, on two workers and two servers of this machine,
with the optimizer on the servers and without one; with --sparse it is 20 row-sparse keys instead,
which p3 hands to MXNet's own store. Prints the median step of each job, and their median.
"""
from __future__ import annotations

import argparse
import sys
import time
from statistics import median
from typing import Any, Callable, List

from launched import measured

KEYS, ELEMENTS = 500, 100
SPARSE_KEYS, SPARSE_SHAPE, ROWS = 20, (1000, 16), 50
STORES = ("dist_sync", "p3")


def work(store_name: str, optimizer: str, sparse: str, steps: int) -> None:
    """A worker; in a job of MXNet's own store, servers and the scheduler as well."""
    import kvstore_ext  # noqa: F401 - makes the store's name known
    import mxnet as mx

    store = mx.kv.create(store_name)
    if optimizer == "optimizer":
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.01))
    step = sparse_step(mx, store) if sparse == "sparse" else dense_step(mx, store)
    times: List[float] = []
    for _ in range(steps):
        begun = time.perf_counter()
        step()
        mx.nd.waitall()
        times.append(time.perf_counter() - begun)
    if store.rank == 0:
        print(f"median {median(times[steps // 8 :])}", flush=True)


def dense_step(mx: Any, store: Any) -> Callable[[], None]:
    gradients = [mx.nd.ones((ELEMENTS,)) for _ in range(KEYS)]
    weights = [mx.nd.zeros((ELEMENTS,)) for _ in range(KEYS)]
    for key, weight in enumerate(weights):
        store.broadcast(key, weight, out=weight)

    def step() -> None:
        for key, weight in enumerate(weights):
            store.pushpull(key, gradients[key], out=weight, priority=-key)

    return step


def sparse_step(mx: Any, store: Any) -> Callable[[], None]:
    rows = mx.nd.arange(ROWS, dtype="int64")
    values = (mx.nd.ones((ROWS, SPARSE_SHAPE[1])), rows)
    gradient = mx.nd.sparse.row_sparse_array(values, shape=SPARSE_SHAPE)
    weights = [mx.nd.sparse.zeros("row_sparse", SPARSE_SHAPE) for _ in range(SPARSE_KEYS)]
    for key in range(SPARSE_KEYS):
        store.init(key, mx.nd.ones(SPARSE_SHAPE).tostype("row_sparse"))

    def step() -> None:
        for key, weight in enumerate(weights):
            store.push(key, gradient, priority=-key)
            store.row_sparse_pull(key, out=weight, priority=-key, row_ids=rows)

    return step


def median_step(store: str, optimizer: str, sparse: str, steps: int) -> float:
    """Runs a job; returns rank 0's median step in seconds."""
    worker = [__file__, "--work", store, optimizer, sparse, "--steps", str(steps)]
    # Importing mxnet in MXNet's own server does all its work.
    server = [] if store == "p3" else ["--server-command", f"{sys.executable} -c 'import mxnet'"]
    (seconds,) = measured("median", ["-n", "2", "-s", "2", *server], worker)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="jobs of each store; default: 3")
    parser.add_argument("--steps", type=int, default=80, help="of each job; default: 80")
    parser.add_argument("--sparse", action="store_true", help="row-sparse keys")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work(*arguments.work, arguments.steps)
    sparse = "sparse" if arguments.sparse else "dense"
    for optimizer in ("optimizer",) if arguments.sparse else ("optimizer", "sums"):
        found = {store: [] for store in STORES}  # type: dict[str, List[float]]
        for _ in range(arguments.repeats):
            for store in STORES:
                found[store].append(median_step(store, optimizer, sparse, arguments.steps))
        for store, seconds in found.items():
            jobs = " ".join(f"{1000 * each:.1f}" for each in seconds)
            print(f"{optimizer:9} {store:9} {1000 * median(seconds):.1f} ms a step ({jobs})")
    return None


if __name__ == "__main__":
    main()
