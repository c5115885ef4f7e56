#!/usr/bin/env python3
"""How long a job takes to its first step, and to its end after the last one, in turns.

    python benchmarks/startup.py --repeats 5

Four workers, three servers and the scheduler, eight processes of this machine, open a store and
make a step with one small key. Prints medians of the jobs, with those of each, for p3 and for
MXNet's own dist_sync: seconds from the call of tools/launch.py to the end of the first step on all
workers, and from the last line of the script to the end of the launcher, when nothing of the job is
left. What importing MXNet and kvstore_ext takes one process alone stands above that. First come a
job of each store and an import of each module that do not count, so that all has its bytecode.
--against names an interpreter that has another version of kvstore_ext, whose p3 then takes the
place of dist_sync.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import List, Tuple

from launched import Arm, arms, in_turns, measured, told


def work(store_name: str) -> None:
    """A worker; in a job of MXNet's own store, servers and the scheduler as well."""
    if store_name == "p3":
        import kvstore_ext  # noqa: F401 - makes the store's name known
    import mxnet as mx

    store = mx.kv.create(store_name)
    value = mx.nd.ones((1000,))
    store.init("weight", value)
    store.push("weight", value)
    store.pull("weight", out=value)
    value.wait_to_read()
    store._barrier()
    if store.rank == 0:
        print("a step", time.time(), flush=True)


def job(arm: Arm, arguments: argparse.Namespace) -> Tuple[float, float]:
    """Runs one; returns the seconds to its first step, and those of its end."""
    options = ["-n", str(arguments.workers), "-s", str(arguments.servers), "--quiet", *arm.server]
    begun = time.time()
    (stepped,) = measured("a step", options, [__file__, "--work", arm.store], arm.python)
    return stepped - begun, time.time() - stepped


def imports(module: str, repeats: int) -> List[float]:
    """Seconds that an interpreter takes which imports it, as a worker does, and ends."""
    taken = []
    # Which kvstore_ext does otherwise in a job; MXNet does not, for a worker.
    environment = {**os.environ, "DMLC_ROLE": "worker"}
    for _ in range(repeats):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True, env=environment)
        taken.append(time.perf_counter() - begun)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--workers", type=int, default=4, help="default: 4")
    parser.add_argument("--servers", type=int, default=3, help="default: 3")
    parser.add_argument("--repeats", type=int, default=3, help="jobs of each; default: 3")
    parser.add_argument("--against", metavar="PYTHON", help="in the place of dist_sync")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work(arguments.work)
    compared = arms(arguments.against)
    # Bytecode is written by what imports something first, unless pip has written it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for arm in compared:
        job(arm, arguments)
    for module in ("mxnet", "kvstore_ext"):
        imports(module, 1)
        print(f"import {module:11} {told(imports(module, arguments.repeats), 's')}")
    found = in_turns(compared, arguments.repeats, lambda arm: job(arm, arguments))
    for arm, jobs in found.items():
        first, end = zip(*jobs)
        print(f"{arm.name:18} {told(first, 's')} to the first step, {told(end, 's')} to the end")
    return None


if __name__ == "__main__":
    main()
