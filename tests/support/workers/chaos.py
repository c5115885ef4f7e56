"""A worker of a training that goes on from its snapshots: chaos.py DIRECTORY NAME STEPS SECONDS.

Between two steps it pauses for so many seconds. Worker 0 writes how far it has come, and at which
step each attempt begins.
"""
from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx

from tests.support import results
from tests.support.tasks.snapshots import RUNS, seed

SNAPSHOT_EVERY = 10


def main(directory: str, name: str, steps: str, seconds: str) -> None:
    other = mx.kv.create("p3")  # which knows the rank, before the run draws its numbers
    rank = other.rank
    seed(rank)
    run = RUNS["servers"]()
    snapshots, progress = (Path(directory) / f"{what} of {name}" for what in ("snapshots", "steps"))
    attempt = os.environ.get("KVSTORE_EXT_ATTEMPT", "0")
    begin = run.store.restore(snapshots) or 0
    if rank == 0:
        with (Path(directory) / f"begins of {name}").open("a") as begins:
            begins.write(f"{begin}\n")
    for step in range(begin, int(steps)):
        run.step()
        run.store.snapshot(snapshots, every=SNAPSHOT_EVERY)
        if rank == 0:
            progress.write_text(f"{attempt} {step + 1} steps")
        time.sleep(float(seconds))
    results.save(directory, name, rank, run.values())
    run.store.close()
    other.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
