"""Loses a process of a job that no launcher watches, and waits for what follows; matrix.py has the
cells.

    python -m tests.failures.losses

loses one after the other in all cells, on an otherwise idle machine, and prints a table of
docs/failures.md: after how many seconds all others had ended, or had said that they go on without
it. As root, for the network namespaces that are the hosts of those that are cut off. It takes some
8 minutes; names of cells, such as `worker-push-killed`, choose some.
"""
from __future__ import annotations

import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, NamedTuple, Sequence

from benchmarks.cluster import Cluster as Network
from benchmarks.cluster import ClusterError, Host
from tests.support.cluster import Cluster, Job, Process
from tests.support.tasks.losing import train

from .matrix import CELLS, LIMIT, Cell, expected, table_of_seconds

SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}


class Loss(NamedTuple):
    """A job that has lost a process, as far as it has ended.

    `seconds` is from the loss to the end of the last of the others or, where they go on, to when
    all have said so; `seconds_of_victim` to the end of one that is cut off.
    """

    job: Job
    survivors: list[Process]
    victim: Process
    seconds: float
    seconds_of_victim: float | None


def lose(cluster: Cluster, cell: Cell, directory: Path) -> Loss:
    """Runs a job until its survivors have ended, as far as they do."""
    if cell.how != "cut off":
        return _lose(cluster, cell, directory, lambda job, victim: victim.send(SIGNALS[cell.how]))
    with Network(hosts=6) as network:

        def cut_off(job: Job, victim: Process) -> None:
            network.cut_off(network.hosts[job.processes.index(victim)])

        return _lose(cluster, cell, directory, cut_off, network.hosts)


def _lose(
    cluster: Cluster,
    cell: Cell,
    directory: Path,
    lose_it: Callable[[Job, Process], None],
    hosts: Sequence[Host] = (),
) -> Loss:
    directory.mkdir()
    job = cluster.start(
        train, directory, cell.role, cell.phase, workers=3, options=cell.options(), hosts=hosts
    )
    victim = _come_to(job, cell)
    survivors = [process for process in job.processes if process is not victim]
    lose_it(job, victim)
    begun = time.monotonic()
    (directory / "go").touch()
    said = None
    promise = expected(cell)
    if promise.well and promise.words:
        for process in survivors:
            process.await_output(promise.words)
        said = time.monotonic()
        (directory / "stop").touch()
    for process in job.processes if hosts else survivors:
        process.wait(LIMIT + 24)
    ends = [process.ended_at or float("inf") for process in survivors]
    own = victim.ended_at - begun if hosts and victim.ended_at else None
    return Loss(job, survivors, victim, (said or max(ends)) - begun, own)


def _come_to(job: Job, cell: Cell) -> Process:
    """Who is to be lost, once the job has come to where that is."""
    if cell.role == "worker":
        job.await_output(f"at {cell.phase}")
        return next(each for each in job.workers if f"at {cell.phase}" in each.output)
    for process in job.workers:
        process.await_output(f"at {cell.phase}")
    return {"server": job.servers, "scheduler": job.scheduler}[cell.role][-1]


def what_is_amiss(cell: Cell, loss: Loss) -> list[str]:
    """What the processes have done otherwise than is promised, a line each."""
    promise, amiss = expected(cell), []
    words = _named(promise.words, loss.victim)
    for process in loss.survivors:
        status = process.wait(0)
        if status != (0 if promise.well else 1):
            amiss.append(f"{process.name}: status {status}")
        if not re.search(words, process.output):
            amiss.append(f"{process.name} does not say {words!r}")
        if not words and "Error" in process.output:
            amiss.append(f"{process.name} says more than nothing")
    return amiss


def _named(words: str, victim: Process) -> str:
    """The words with the numbers of workers, where the one that is lost has got its own."""
    found = re.search(r"is worker (\d)", victim.output)
    if not found:
        return words
    first, second = (rank for rank in "012" if rank != found[1])
    others = words.replace(r"workers \d and \d", f"workers {first} and {second}")
    return others.replace(r"worker \d", f"worker {found[1]}")


def main(names: list[str]) -> int:
    """Returns 0 where all cells come to what is promised."""
    cells = [cell for cell in CELLS if not names or cell.name in names]
    found, status = {}, 0
    with tempfile.TemporaryDirectory(prefix="kvstore_ext-losses-") as folder:
        cluster = Cluster(Path(folder))
        try:
            for cell in cells:
                found[cell] = lose(cluster, cell, Path(folder, cell.name))
                print(f"{cell.name}: {found[cell].seconds:.1f} s", file=sys.stderr, flush=True)
                for line in what_is_amiss(cell, found[cell]):
                    print(f"  {line}", file=sys.stderr, flush=True)
                    status = 1
        except ClusterError as error:
            print(f"losses: {error}", file=sys.stderr)
            return 2
        finally:
            cluster.end()
    seconds = {cell: (loss.seconds, loss.seconds_of_victim) for cell, loss in found.items()}
    print(table_of_seconds(seconds), end="")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
