#!/usr/bin/env python3
"""How much memory servers and workers take for a network's keys, beside MXNet's own store.

    python benchmarks/memory.py --network vgg19

Two workers and two servers of this machine push and pull all gradients of a network. Prints by how
much processes have grown at most, as Linux counts their resident pages, from when all had opened
their stores: of a server in shares of the parameters, which are all of them divided by the servers;
of a worker in gradients, which are as many bytes as the parameters. Gradients and parameters of the
script itself are there before that and not counted. Each is the largest of its role.

--optimizer has SGD on the servers, with a momentum where that is above 0, whose state is a share
more. --late has worker 1 push a second after the other, for which servers hold what has come.
--shared has processes use memory that both have, which counts for either then; hosts of their own
have none, so that this is off. --against names an interpreter that has another version of
kvstore_ext, whose p3, by its defaults, then takes the place of dist_sync.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Dict, List, Tuple

from launched import Arm, arms, in_turns, job_processes, measured, told
from unshaped import sizes

WORKERS = SERVERS = 2
STEPS = 4
LATE = 1.0  # seconds


def status(process: Path, name: str) -> int:
    """A figure of a process from Linux, in bytes: VmRSS now, VmHWM at most."""
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


def processes() -> Dict[str, List[Path]]:
    """Those of this job that Python runs for a role."""
    found: Dict[str, List[Path]] = {"worker": [], "server": []}
    for process, variables in job_processes():
        for role, members in found.items():
            if f"DMLC_ROLE={role}".encode() in variables:
                with contextlib.suppress(OSError):
                    if "python" in os.readlink(process / "exe"):
                        members.append(process)
    return found


def work(store_name: str, arguments: argparse.Namespace) -> None:
    """A worker; in a job of MXNet's own store, servers and the scheduler as well."""
    if store_name == "p3":
        import kvstore_ext  # noqa: F401 - makes the store's name known
    import mxnet as mx

    store = mx.kv.create(store_name)
    if arguments.optimizer is not None:
        store.set_optimizer(mx.optimizer.SGD(
            learning_rate=0.01, momentum=arguments.optimizer, multi_precision=True))
    keys = list(enumerate(sizes(arguments.network)))
    gradients = [mx.nd.ones((elements,), dtype=arguments.dtype) for _, elements in keys]
    weights = [mx.nd.zeros((elements,), dtype=arguments.dtype) for _, elements in keys]
    mx.nd.waitall()
    store._barrier()
    found = processes()
    before = {}
    for each in (each for members in found.values() for each in members):
        (each / "clear_refs").write_text("5")  # has the most so far be what is there now
        before[each] = status(each, "VmRSS")
    store._barrier()
    for key, _ in keys:
        store.init(key, weights[key])
        store.pull(key, out=weights[key])
    for _ in range(STEPS):
        mx.nd.waitall()
        store._barrier()
        if arguments.late and store.rank == 1:
            time.sleep(LATE)
        for key, _ in reversed(keys):
            store.push(key, gradients[key], priority=-key)
            store.pull(key, out=weights[key], priority=-key)
    mx.nd.waitall()
    store._barrier()
    if store.rank == 0:
        whole = sum(elements for _, elements in keys) * weights[0].asnumpy().itemsize
        grown = {
            role: max(status(each, "VmHWM") - before[each] for each in members)
            for role, members in found.items()
        }
        print("memory", grown["server"] / (whole / SERVERS), grown["worker"] / whole, flush=True)
    store._barrier()


def job(arm: Arm, arguments: argparse.Namespace) -> Tuple[float, float]:
    """Runs one; returns a server's growth in shares, and a worker's in gradients."""
    options = ["-n", str(WORKERS), "-s", str(SERVERS), *arm.server]
    variables = {"KVSTORE_EXT_OPTIONS": json.dumps({"shared_memory": arguments.shared})}
    if arm.python == arguments.against:
        variables = {}
    work_of_arm = [__file__, "--work", arm.store, *sys.argv[1:]]
    server, worker = measured("memory", options, work_of_arm, arm.python, variables)
    return server, worker


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--network", default="vgg19", help="of kvstore_ext/predict/networks")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16"))
    parser.add_argument("--optimizer", type=float, metavar="MOMENTUM")
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--repeats", type=int, default=3, help="jobs of each store, in turns")
    parser.add_argument("--against", metavar="PYTHON", help="in the place of dist_sync")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work(arguments.work, arguments)
    compared = arms(arguments.against)
    found = in_turns(compared, arguments.repeats, lambda arm: job(arm, arguments))
    for arm, grown in found.items():
        servers, workers = zip(*grown)
        print(f"{arm.name:9} a server {told(servers, 'shares')}, "
              f"a worker {told(workers, 'gradients')}")
    return None


if __name__ == "__main__":
    main()
