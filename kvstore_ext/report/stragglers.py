"""Which workers come last with their gradients, and which servers take long."""
from __future__ import annotations

from dataclasses import dataclass
from typing import List

import numpy as np

from ..trace.events import Kind
from ..trace.reading import JobTrace
from .causes import Causes
from .iteration import Iteration
from .moments import MISSING, Moments, Names
from .spans import common, length, union


@dataclass(frozen=True)
class WorkerPace:
    """How fast a worker is beside the others.

    Attributes
    ----------
    rank
        Its rank.
    computing
        Seconds that it computes in a step, the median.
    last
        Share of all gradients with which it came last, of those that were compared; nan where it
        is the only worker of these, or has no step that counts.
    late
        Seconds by which it came after the one before it then, in the mean; nan where it never did.
    held_up
        Seconds that workers waited for its gradients, a step.
    """

    rank: int
    computing: float
    last: float
    late: float
    held_up: float


@dataclass(frozen=True)
class ServerPace:
    """How long a server takes.

    Attributes
    ----------
    rank
        Its rank.
    answer
        Seconds from when a slice of the last worker has come until the first answer, the median;
        nan where nothing was recorded.
    updating
        Share of the counted time in which its optimizer computed.
    held_up
        Seconds that workers waited for it to add up and update, a step.
    """

    rank: int
    answer: float
    updating: float
    held_up: float


def paces_of_workers(
    job: JobTrace, names: Names, iterations: List[Iteration], causes: Causes, steps: int
) -> List[WorkerPace]:
    """Of all, in the order of ranks; `steps` is over how many steps waits were added up."""
    compared = [place for place, one in enumerate(iterations) if len(one.steps.numbers)]
    times = _times_of_gradients(job, names, iterations, compared)
    last = np.array(compared)[np.argmax(times, axis=0)] if times.size else np.zeros(0, int)
    behind = _behind(times)
    held_up = causes.by_late_worker()
    paces = []
    for place, (worker, iteration) in enumerate(zip(job.workers, iterations)):
        mine = last == place
        beside_others = len(last) and place in compared and len(compared) > 1
        computing = iteration.computing
        paces.append(
            WorkerPace(
                worker.rank,
                float(np.median(computing)) if len(computing) else float("nan"),
                float(np.mean(mine)) if beside_others else float("nan"),
                float(np.mean(behind[mine])) if mine.any() else float("nan"),
                held_up.get(worker.rank, 0.0) / max(1, steps),
            )
        )
    return paces


def paces_of_servers(
    job: JobTrace, names: Names, counted: np.ndarray, causes: Causes, steps: int
) -> List[ServerPace]:
    """Of all, in the order of ranks; `counted` as in links.py."""
    held_up = causes.by_server()
    begin, end = (counted[0, 0], counted[-1, 1]) if len(counted) else (0, 0)
    paces = []
    for server in job.servers:
        summed = server.of_kind(Kind.SUMMED)
        arrived = Moments(names, summed[summed["round"] > 0])
        rows = arrived.rows
        answered = Moments(names, server.of_kind(Kind.ANSWERED))
        first = answered.begin(names.of(rows["key"], rows["round"], rows["slice"]))
        known = (first != MISSING) & (rows["begin"] >= begin) & (rows["begin"] < end)
        took = (first - rows["begin"])[known]
        updated = server.of_kind(Kind.UPDATED)
        busy = common(union(updated["begin"], updated["end"]), counted)
        paces.append(
            ServerPace(
                server.rank,
                float(np.median(took)) / 1e9 if len(took) else float("nan"),
                busy / length(counted) if len(counted) else 0.0,
                held_up.get(server.rank, 0.0) / max(1, steps),
            )
        )
    return paces


def _times_of_gradients(
    job: JobTrace, names: Names, iterations: List[Iteration], compared: List[int]
) -> np.ndarray:
    """When each gradient was ready that all workers of these places have recorded, in steps that
    count, nanoseconds, shape (workers, gradients)."""
    moments = [Moments(names, job.workers[place].gradients()) for place in compared]
    if not moments:
        return np.zeros((0, 0), np.int64)
    rows = moments[0].rows
    wanted = names.of(rows["key"], rows["round"])
    times = np.stack([each.end(wanted) for each in moments])
    counted = (times != MISSING).all(axis=0)
    for own, place in zip(times, compared):
        counted &= iterations[place].steps.of(own) >= 0
    return times[:, counted]


def _behind(times: np.ndarray) -> np.ndarray:
    """Seconds between the last worker and the one before it."""
    if len(times) < 2:
        return np.zeros(times.shape[1] if times.ndim == 2 else 0)
    ordered = np.sort(times, axis=0)
    return (ordered[-1] - ordered[-2]) / 1e9
