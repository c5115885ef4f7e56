#!/usr/bin/env python3
"""Shows that no process of a job grows: many small rounds, and every process's memory over time.

    python benchmarks/memory.py --rounds 100000

Starts a job with tools/launch.py and prints the resident memory (Linux) of each of its processes,
in MB, after every twentieth of the rounds; then what each has grown by since the first tenth, when
everything that is allocated once has been.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Dict, List

LAUNCH = Path(__file__).resolve().parents[1] / "tools" / "launch.py"
MARK = "KVSTORE_EXT_MEMORY_BENCHMARK"  # in the environment of the job's processes
SAMPLES = 20


def train(store_name: str, rounds: int, keys: int) -> None:
    """A worker: pushes and pulls small keys of 10, 20, ... elements, updated with momentum."""
    import kvstore_ext  # noqa: F401 - makes the store's name known
    import mxnet as mx

    store = mx.kv.create(store_name)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.01, momentum=0.9))
    weights = [mx.nd.zeros((10 * (key + 1),)) for key in range(keys)]
    gradients = [mx.nd.ones(weight.shape) for weight in weights]
    for key, weight in enumerate(weights):
        store.broadcast(key, weight, out=weight)
    interval = rounds // SAMPLES
    # One interval more, so that all processes are still there when they are last looked at.
    for number in range(1, rounds + interval + 1):
        for key, weight in enumerate(weights):
            store.pushpull(key, gradients[key], out=weight, priority=-key)
        mx.nd.waitall()
        if store.rank == 0 and number <= rounds and number % interval == 0:
            print(f"round {number}", flush=True)


def resident_memory(mark: str) -> Dict[str, float]:
    """MB of every process of the job, by role and process number, in their order of starting."""
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            environment = directory.joinpath("environ").read_bytes().split(b"\0")
            pages = int(directory.joinpath("statm").read_text().split()[1])
        except OSError:
            continue  # it has ended, or is another user's
        role = next((v[10:].decode() for v in environment if v.startswith(b"DMLC_ROLE=")), "")
        if f"{MARK}={mark}".encode() in environment and role:
            found[f"{role} {directory.name}"] = pages * 4096 / 1e6
    return dict(sorted(found.items()))


def watch(arguments: argparse.Namespace) -> int:
    """Runs the job and prints the table; returns the job's exit status."""
    mark = uuid.uuid4().hex
    sizes = ["--rounds", str(arguments.rounds), "--keys", str(arguments.keys)]
    worker = [sys.executable, __file__, "--worker", "--kv-store", arguments.kv_store, *sizes]
    counts = ["-n", str(arguments.workers), "-s", str(arguments.servers)]
    table: List[Dict[str, float]] = []
    with tempfile.TemporaryDirectory() as logs:
        command = [sys.executable, str(LAUNCH), *counts, "--log-dir", logs]
        job = subprocess.Popen(
            [*command, "--env", f"{MARK}={mark}", *worker],
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        assert job.stdout is not None
        for line in job.stdout:
            if "round " not in line:
                print(line, end="")
                continue
            memory = resident_memory(mark)
            if not table:
                print("round".rjust(8), *(name.rjust(16) for name in memory))
            table.append(memory)
            print(line.split()[-1].rjust(8), *(f"{size:16.2f}" for size in memory.values()))
        status = job.wait()
    if status == 0:
        settled, last = table[SAMPLES // 10 - 1], table[-1]
        print("grown by", *(f"{last[name] - settled[name]:16.2f}" for name in last))
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100_000, help="a multiple of 20")
    parser.add_argument("--keys", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--kv-store", default="p3")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rounds < SAMPLES or arguments.rounds % SAMPLES:
        parser.error(f"--rounds is {arguments.rounds}; it must be a multiple of {SAMPLES}")
    if arguments.worker:
        train(arguments.kv_store, arguments.rounds, arguments.keys)
        return 0
    return watch(arguments)


if __name__ == "__main__":
    sys.exit(main())
