"""Runs a leg, and says what was wrong with it."""
from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.soak import train
from tests.soak.legs import KEYS, LOSSY, Leg
from tests.soak.looking import Look, growth, look
from tests.support.cluster import Cluster, Job

LIMIT = 3600.0  # seconds from one mark to the next
SERVERS = 2
# Bytes that a process may grow by: at all, by what a heap happens to be cut into, and by a round.
_SLACK, _A_ROUND = 1 << 20, 4


def run(leg: Leg, workers: int) -> dict[str, Any]:
    """What came of a leg, for JSON.

    `checksums` has that of each mark's step, or nothing where workers differ; `processes` has of
    each the bytes that it has grown by a round, and the first and last numbers of descriptors and
    threads.
    """
    with tempfile.TemporaryDirectory(prefix="kvstore_ext-soak-") as directory:
        cluster = Cluster(Path(directory))
        try:
            begun = time.monotonic()
            job = cluster.start(
                train.train, directory, leg.store, KEYS, leg.steps, leg.every,
                workers=workers, servers=SERVERS, environment=LOSSY if leg.lossy else {},
                options={"timeout": 300, "deterministic": True},
            )
            looks = _watch(job, leg)
            seconds = time.monotonic() - begun
            Path(directory, "looked").touch()
            job.wait(LIMIT)
        finally:
            cluster.end()
    return {
        "leg": leg.name,
        "rounds": leg.rounds,
        "workers": workers,
        "seconds": round(seconds, 1),
        "checksums": _checksums(job),
        "processes": {name: _summary(seen) for name, seen in looks.items()},
    }


def _summary(looks: list[tuple[int, Look]]) -> dict[str, Any]:
    (_, first), (_, last) = looks[0], looks[-1]
    counts = {what: [first[what], last[what]] for what in ("descriptors", "threads")}
    return {"memory": growth(looks, "memory"), **counts}


def _watch(job: Job, leg: Leg) -> dict[str, list[tuple[int, Look]]]:
    """The looks at each process, once a worker has come to the last mark."""
    looks: dict[str, list[tuple[int, Look]]] = {each.name: [] for each in job.processes}
    for step in [*range(leg.every, leg.steps, leg.every), leg.steps]:
        job.workers[0].await_output(rf"at {step} ", LIMIT)
        for process in job.processes:
            looks[process.name].append((step * KEYS, look(process.pid)))
    return looks


def _checksums(job: Job) -> dict[str, str]:
    found = [dict(re.findall(r"at (\d+) (\d+)", worker.output)) for worker in job.workers]
    return found[0] if all(each == found[0] for each in found) else {}


def faults(result: dict[str, Any], others: dict[str, dict[str, Any]]) -> list[str]:
    """What is wrong with a leg, in words; `others` has those that have run, by their names."""
    found = [] if result["checksums"] else ["workers have got different sums"]
    whole = others.get(result["leg"].replace(", lossy", ""), result)
    common = set(result["checksums"]) & set(whole["checksums"])
    if any(result["checksums"][step] != whole["checksums"][step] for step in common):
        found.append("sums differ from those where nothing was lost")
    for name, process in result["processes"].items():
        for what in ("descriptors", "threads"):
            first, last = process[what]
            if last > first:
                found.append(f"{name} has {last} {what}, {first} before")
        grown = process["memory"] * result["rounds"]
        # With PS_RESEND ps-lite remembers every message that it has got, for ever.
        if "lossy" not in result["leg"] and grown > _SLACK + _A_ROUND * result["rounds"]:
            found.append(f"{name} grows by {process['memory']:.0f} bytes a round")
    return found
