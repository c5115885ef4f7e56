#!/usr/bin/env python3
"""What moving a network's gradients costs where no link is slow, in jobs that take turns.

    python benchmarks/unshaped.py --network vgg19 --repeats 3

Two workers and two servers of this machine push and pull all gradients of a network, with an
optimizer on the servers (SGD, or another by --optimizer) and without one, where sums take the
gradients' place as with gluon.Trainer; nothing is computed. The stores are p3, MXNet's own
dist_sync and MXNet's own P3, whose servers take no optimizer; --arms stock_p3_local has that go
through Unix sockets, by ps-lite's DMLC_LOCAL. Prints medians of the jobs, with
those of each: a step's time, the processor time of all processes together, and that time for each
gigabyte (10**9 bytes) which a worker pushes and pulls. --against names an interpreter that has
another version of kvstore_ext, whose p3 then takes the place of MXNet's stores. --arms p3 runs that
alone, and --options gives its store options, as KVSTORE_EXT_OPTIONS does.
"""
from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import List, Tuple

from launched import STOCK_P3, STOCK_SERVERS, in_turns, measured, processor_seconds, told

WORKERS, WARM_UP = 2, 3
ARMS = ("p3", "stock_p3", "dist_sync")
LOCAL = "stock_p3_local"
VARIABLES = {"stock_p3": STOCK_P3, LOCAL: {**STOCK_P3, "DMLC_LOCAL": "1"}}
WAYS = ("sums", "optimizer")
OPTIMIZERS = {"sgd": ("sgd", {}), "momentum": ("sgd", {"momentum": 0.9}), "adam": ("adam", {})}
# "Update on P3StoreDist is not supported", says MXNet in a server's log, and goes on without.
MISSING = {(arm, "optimizer") for arm in VARIABLES}
NETWORKS = Path(__file__).resolve().parents[1] / "kvstore_ext" / "predict" / "networks"
BYTES = 4  # of an element


def sizes(network: str) -> List[int]:
    """Elements of each key, in the order of the forward pass."""
    layers = json.loads((NETWORKS / f"{network}.json").read_text())["layers"]
    return [elements for layer in layers for elements in layer["parameters"].values()]


def work(store_name: str, way: str, arguments: argparse.Namespace) -> None:
    """A worker; in a job of MXNet's own stores, servers and the scheduler as well."""
    if store_name == "p3":
        import kvstore_ext  # noqa: F401 - makes the store's name known
    import mxnet as mx

    store = mx.kv.create(store_name)
    if way == "optimizer":
        name, settings = OPTIMIZERS[arguments.optimizer]
        store.set_optimizer(mx.optimizer.create(name, learning_rate=0.01, **settings))
    keys = sizes(arguments.network)
    gradients = [mx.nd.ones((elements,)) for elements in keys]
    weights = [mx.nd.zeros((elements,)) for elements in keys]
    for key, weight in enumerate(weights):
        store.broadcast(key, weight, out=weight)
    # Backward passes end with the first layer, which the next forward pass needs first.
    results = weights if way == "optimizer" else gradients
    order = [(key, gradients[key], results[key]) for key in reversed(range(len(keys)))]

    def step() -> float:
        begun = time.perf_counter()
        for key, gradient, result in order:
            store.pushpull(key, gradient, out=result, priority=-key)
        mx.nd.waitall()
        return time.perf_counter() - begun

    for _ in range(WARM_UP):
        step()
    used = processor_seconds()
    times = [step() for _ in range(arguments.steps)]
    used = processor_seconds() - used
    if store.rank == 0:
        print("a step", median(times), used / arguments.steps, flush=True)


def job(arm: str, way: str, arguments: argparse.Namespace) -> Tuple[float, float]:
    """Runs one; returns a step's seconds and its processor seconds."""
    ours = arm in ("p3", arguments.against)
    worker = [__file__, "--work", "p3" if ours else "dist_sync", way,
              "--steps", str(arguments.steps), "--network", arguments.network,
              "--optimizer", arguments.optimizer]
    server = () if ours else STOCK_SERVERS
    variables = VARIABLES.get(arm, {})
    if arm == "p3" and arguments.options:
        variables = {"KVSTORE_EXT_OPTIONS": arguments.options}
    python = arm if arm == arguments.against else sys.executable
    processes = ["-n", str(WORKERS), "-s", str(WORKERS), *server]
    seconds, used = measured("a step", processes, worker, python, variables)
    return seconds, used


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--network", default="vgg19", help="of kvstore_ext/predict/networks")
    parser.add_argument("--repeats", type=int, default=3, help="jobs of each; default: 3")
    parser.add_argument("--steps", type=int, default=6, help="of each job; default: 6")
    parser.add_argument("--arms", nargs="+", choices=(*ARMS, LOCAL),
                        help="default: all but the last")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd", help="default: sgd")
    parser.add_argument("--options", help="of p3, as JSON")
    parser.add_argument("--against", metavar="PYTHON", help="in the place of MXNet's stores")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work(*arguments.work, arguments)
    arms = arguments.arms or (("p3", arguments.against) if arguments.against else ARMS)
    moved = WORKERS * 2 * BYTES * sum(sizes(arguments.network)) / 1e9
    for way in arguments.ways:
        known = [arm for arm in arms if (arm, way) not in MISSING]
        found = in_turns(known, arguments.repeats, partial(job, way=way, arguments=arguments))
        for arm, jobs in found.items():
            seconds, used = zip(*jobs)
            name = "the other" if arm == arguments.against else arm
            print(f"{way:9} {name:14} {told(seconds, 's a step')}, "
                  f"{told(used, 's of processors')}, {median(used) / moved:.2f} for a GB")
    return None


if __name__ == "__main__":
    main()
