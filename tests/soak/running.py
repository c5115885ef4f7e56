"""Runs a leg, and says what was wrong with it."""
from __future__ import annotations

import contextlib
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator

from tests.soak import train
from tests.soak.legs import KEYS, LOSSY, Leg
from tests.soak.looking import Look, growth, look
from tests.support.cluster import Cluster, Job
from tests.support.heap import ask
from tests.support.paths import SCRIPTS

LIMIT = 3600.0  # seconds from one mark to the next
SERVERS = 2
_SERVER = (str(SCRIPTS / "telling_server.py"),)
# Each thread would keep some of what it has freed, which glibc counts as live.
_WITHOUT_CACHES = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
# Bytes a round that a process's live heap may grow by, and its memory, whose pages are touched one
# after the other, and in which the heap happens to be cut into pieces.
_LIVE, _PIECES = 0.5, 16.0


def run(leg: Leg, workers: int) -> dict[str, Any]:
    """What came of a leg, for JSON.

    `checksums` has that of each mark's step, or nothing where workers differ; `looks` has those at
    each process, by its name.
    """
    with tempfile.TemporaryDirectory(prefix="kvstore_ext-soak-") as directory:
        cluster = Cluster(Path(directory))
        try:
            begun = time.monotonic()
            job = cluster.start(
                train.train, directory, leg.store, KEYS, leg.steps, leg.every,
                workers=workers, servers=SERVERS, server=_SERVER,
                environment={
                    "SOAK_HEAPS": directory, **_WITHOUT_CACHES, **(LOSSY if leg.lossy else {}),
                },
                options={"timeout": 300, "deterministic": True},
            )
            with _reported(job):
                looks = _watch(job, leg, directory)
                seconds = time.monotonic() - begun
                job.wait(LIMIT)
        finally:
            cluster.end()
    return {
        "leg": leg.name,
        "rounds": leg.rounds,
        "workers": workers,
        "seconds": round(seconds, 1),
        "checksums": _checksums(job),
        "looks": looks,
    }


@contextlib.contextmanager
def _reported(job: Job) -> Iterator[None]:
    """Prints what a job's processes have said where it fails: nothing else is left of it."""
    try:
        yield
    except BaseException:
        print(job.report(), file=sys.stderr, flush=True)
        raise


def _watch(job: Job, leg: Leg, heaps: str) -> dict[str, list[Look]]:
    """The looks at each process, once all workers have come to the last mark. They wait at each of
    them, so that nothing is on its way."""
    looks: dict[str, list[Look]] = {each.name: [] for each in job.processes}
    for step in [*range(leg.every, leg.steps, leg.every), leg.steps]:
        for worker in job.workers:
            worker.await_output(rf"at {step} ", LIMIT)
        live = ask(heaps, [process.pid for process in job.processes])
        for process in job.processes:
            looks[process.name].append(look(process.pid, step * KEYS, live[process.pid]))
        train.go_on(heaps, step)
    return looks


def _checksums(job: Job) -> dict[str, str]:
    found = [dict(re.findall(r"at (\d+) (\d+)", worker.output)) for worker in job.workers]
    return found[0] if all(each == found[0] for each in found) else {}


def whole_of(result: dict[str, Any]) -> str:
    """The leg that has the same sums, where nothing is lost."""
    return str(result["leg"]).replace(", lossy", "")


def faults(result: dict[str, Any], others: dict[str, dict[str, Any]]) -> list[str]:
    """What is wrong with a leg, in words; `others` has those that have run, by their names."""
    found = [] if result["checksums"] else ["workers have got different sums"]
    whole = others.get(whole_of(result), {"checksums": {}})
    common = set(result["checksums"]) & set(whole["checksums"])
    if any(result["checksums"][step] != whole["checksums"][step] for step in common):
        found.append("sums differ from those where nothing was lost")
    for name, looks in result["looks"].items():
        for what in ("descriptors", "threads"):
            first, last = looks[0][what], looks[-1][what]
            if last > first:
                found.append(f"{name} has {last} {what}, {first} before")
        if "lossy" in result["leg"]:  # ps-lite remembers every message that it has got, for ever
            continue
        for what, limit in (("heap", _LIVE), ("memory", _PIECES)):
            grown = growth(looks, what)
            if grown.least > limit:
                found.append(f"{name}'s {what} grows by {grown} bytes a round")
    return found
