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
from tests.support.paths import SCRIPTS

LIMIT = 3600.0  # seconds from one mark to the next
SERVERS = 2
_SERVER = (str(SCRIPTS / "telling_server.py"),)
# Bytes that a process's live heap may grow by: at all, by what is under way and by ZeroMQ's queues,
# which take 32 KiB a connection once; and by a round. The memory in which it lies may grow by more,
# as it happens to be cut into pieces.
_SLACK, _A_ROUND = 2 << 20, 1
_PIECES = 16 << 20


def run(leg: Leg, workers: int) -> dict[str, Any]:
    """What came of a leg, for JSON.

    `checksums` has that of each mark's step, or nothing where workers differ; `processes` has of
    each the bytes by which its heap and its memory have grown in a round, and the first and last
    numbers of descriptors and threads.
    """
    with tempfile.TemporaryDirectory(prefix="kvstore_ext-soak-") as directory:
        cluster = Cluster(Path(directory))
        try:
            begun = time.monotonic()
            job = cluster.start(
                train.train, directory, leg.store, KEYS, leg.steps, leg.every,
                workers=workers, servers=SERVERS, server=_SERVER,
                environment={"SOAK_HEAPS": directory, **(LOSSY if leg.lossy else {})},
                options={"timeout": 300, "deterministic": True},
            )
            looks = _watch(job, leg, directory)
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
    return {what: growth(looks, what) for what in ("heap", "memory")} | counts


def _watch(job: Job, leg: Leg, heaps: str) -> dict[str, list[tuple[int, Look]]]:
    """The looks at each process, once a worker has come to the last mark."""
    looks: dict[str, list[tuple[int, Look]]] = {each.name: [] for each in job.processes}
    for step in [*range(leg.every, leg.steps, leg.every), leg.steps]:
        job.workers[0].await_output(rf"at {step} ", LIMIT)
        for process in job.processes:
            looks[process.name].append((step * KEYS, look(process.pid, heaps)))
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
        if "lossy" in result["leg"]:  # ps-lite remembers every message that it has got, for ever
            continue
        rounds = result["rounds"]
        if process["heap"] * rounds > _SLACK + _A_ROUND * rounds:
            found.append(f"{name}'s live heap grows by {process['heap']:.0f} bytes a round")
        if process["memory"] * rounds > _PIECES + _A_ROUND * rounds:
            found.append(f"{name} grows by {process['memory']:.0f} bytes a round")
    return found
