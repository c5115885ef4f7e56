#!/usr/bin/env python3
"""Many small keys: what a step of p3 costs beside MXNet's own dist_sync, in jobs that take turns.

    python benchmarks/small_keys.py --repeats 5

A step pushes and pulls 500 keys of 100 elements, on two workers and two servers of this machine,
with the optimizer on the servers and without one; with --sparse it is 20 row-sparse keys instead,
which p3 hands to MXNet's own store. Prints medians of the jobs, with those of each: a step's time,
also a median, and the processor time of all processes together. Of p3 it has the messages that a
worker and the servers exchange in a step, both ways. The optimizer is SGD; --optimizer names
another, and with --dtype float16 it updates by multi_precision. --against names an interpreter that
has another version of kvstore_ext, whose p3 then takes the place of dist_sync.
"""
from __future__ import annotations

import argparse
import time
from functools import partial
from statistics import median
from typing import Any, Callable, List, Sequence

from launched import Arm, arms, in_turns, measured, processor_seconds, told

SPARSE_KEYS, SPARSE_SHAPE, ROWS = 20, (1000, 16), 50
WARM_UP = 10  # steps


def work(store_name: str, optimizer: str, sparse: str, arguments: argparse.Namespace) -> None:
    """A worker; in a job of MXNet's own store, servers and the scheduler as well."""
    if store_name == "p3":
        import kvstore_ext  # noqa: F401 - makes the store's name known
    import mxnet as mx

    store = mx.kv.create(store_name)
    if optimizer == "optimizer":
        store.set_optimizer(made(mx, arguments))
    if sparse == "sparse":
        step = sparse_step(mx, store)
    else:
        step = dense_step(mx, store, arguments, optimizer == "sums")

    def run(steps: int) -> List[float]:
        times: List[float] = []
        for _ in range(steps):
            begun = time.perf_counter()
            step()
            mx.nd.waitall()
            times.append(time.perf_counter() - begun)
        return times

    run(WARM_UP)
    used, sent = processor_seconds(), messages(store)
    times = run(arguments.steps)
    used, sent = processor_seconds() - used, messages(store) - sent
    if store.rank == 0:
        found = median(times), used / arguments.steps, sent / arguments.steps
        print("a step", *found, flush=True)


def made(mx: Any, arguments: argparse.Namespace) -> Any:
    """The optimizer that is asked for."""
    how = {"learning_rate": 0.01, "multi_precision": arguments.dtype == "float16"}
    if arguments.optimizer == "adam":
        return mx.optimizer.Adam(**how)
    return mx.optimizer.SGD(momentum=0.9 if arguments.optimizer == "momentum" else 0.0, **how)


def messages(store: Any) -> int:
    """So far, sent and received; 0 with MXNet's own store and old versions, which do not count
    them."""
    stats = store.stats() if hasattr(store, "stats") else {}
    counted = (stats.get(which, {}) for which in ("messages_sent", "messages_received"))
    return sum(sum(each.values()) for each in counted)


def dense_step(
    mx: Any, store: Any, arguments: argparse.Namespace, sums: bool
) -> Callable[[], None]:
    shape, keys = (arguments.elements,), range(arguments.keys)
    gradients = [mx.nd.ones(shape, dtype=arguments.dtype) for _ in keys]
    weights = [mx.nd.zeros(shape, dtype=arguments.dtype) for _ in keys]
    for key, weight in enumerate(weights):
        store.broadcast(key, weight, out=weight)

    results = gradients if sums else weights  # as with Trainer

    def step() -> None:
        for key, gradient in enumerate(gradients):
            store.pushpull(key, gradient, out=results[key], priority=-key)

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


def job(arm: Arm, optimizer: str, sparse: str, arguments: argparse.Namespace) -> Sequence[float]:
    """Runs one; returns a step's seconds, its processor seconds, and its messages."""
    worker = [__file__, "--work", arm.store, optimizer, sparse, "--steps", str(arguments.steps),
              "--keys", str(arguments.keys), "--elements", str(arguments.elements),
              "--optimizer", arguments.optimizer, "--dtype", arguments.dtype]
    return measured("a step", ["-n", "2", "-s", "2", *arm.server], worker, arm.python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="jobs of each store; default: 3")
    parser.add_argument("--steps", type=int, default=80, help="of each job; default: 80")
    parser.add_argument("--keys", type=int, default=500, help="dense ones; default: 500")
    parser.add_argument("--elements", type=int, default=100, help="of a dense key; default: 100")
    parser.add_argument("--optimizer", default="sgd", choices=("sgd", "momentum", "adam"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16"))
    parser.add_argument("--sparse", action="store_true", help="row-sparse keys")
    parser.add_argument("--against", metavar="PYTHON", help="in the place of dist_sync")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work(*arguments.work, arguments)
    sparse = "sparse" if arguments.sparse else "dense"
    for optimizer in ("optimizer",) if arguments.sparse else ("optimizer", "sums"):
        ask = partial(job, optimizer=optimizer, sparse=sparse, arguments=arguments)
        found = in_turns(arms(arguments.against), arguments.repeats, ask)
        for arm, jobs in found.items():
            seconds, used, sent = zip(*jobs)
            print(f"{optimizer:9} {arm.name:9} {told_whole(1000, seconds, 'ms a step')}, "
                  f"{told_whole(1000, used, 'ms of processors')}, "
                  f"{told_whole(1, sent, 'messages')}")
    return None


def told_whole(factor: float, numbers: Sequence[float], what: str) -> str:
    """The median, and each of them, without decimals."""
    return told([factor * number for number in numbers], what, decimals=0)


if __name__ == "__main__":
    main()
