"""The steps that a report counts, worker by worker."""
from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence

import numpy as np

from ..trace.events import Kind
from ..trace.reading import ProcessTrace
from .moments import MISSING
from .spans import places_in

_WARM_UP = 2  # steps in which memory is allocated and the order learned
_LEAST = 3  # steps that must be left to leave others out
_INTERRUPTED = 4  # times as long as the median: an evaluation, say, or a snapshot


@dataclass(frozen=True)
class Steps:
    """Steps of one worker, from the first gradient of a round to that of the next.

    Attributes
    ----------
    numbers
        The rounds whose results they wait for, shape (n,).
    begins, ends
        Nanoseconds, shape (n,).
    interrupted
        How many were left out because they took more than 4 times the median.
    warming
        How many of the job's first steps were left out.
    unrecorded
        How many were left out because some process had no room for its events any more.
    """

    numbers: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    interrupted: int = 0
    warming: int = 0
    unrecorded: int = 0

    @property
    def spans(self) -> np.ndarray:
        """Beginnings and ends, nanoseconds, shape (n, 2)."""
        return np.column_stack((self.begins, self.ends))

    @property
    def seconds(self) -> np.ndarray:
        """How long each takes, shape (n,)."""
        return (self.ends - self.begins) / 1e9

    def of(self, times: np.ndarray) -> np.ndarray:
        """In which of them these times lie, its end included; -1 for none. Shape of `times`."""
        return places_in(self.spans, times)


def first_full(processes: Sequence[ProcessTrace]) -> Optional[ProcessTrace]:
    """The process that had no room for events before any other; None where all had."""
    full = [process for process in processes if process.dropped]
    return min(full, key=recorded_until) if full else None


def recorded_until(process: ProcessTrace) -> int:
    """When its last event ended, nanoseconds; MISSING where it has none."""
    return int(process.events["end"].max(initial=MISSING))


def steps_of(worker: ProcessTrace, until: Optional[int] = None) -> Steps:
    """Its steps in order, without those that warm up or were interrupted.

    Parameters
    ----------
    worker
        Whose they are.
    until
        Before when they have to end, nanoseconds; None for any time.
    """
    events = worker.of_kind(Kind.STEP)
    events = events[np.argsort(events["begin"], kind="stable")]
    recorded = np.full(len(events), True) if until is None else events["end"] < until
    unrecorded = int(np.sum(~recorded))
    events = events[recorded]
    numbers = events["round"].astype(np.int64)
    late = numbers > _WARM_UP
    warming = 0
    if np.sum(late) >= _LEAST:
        warming = int(np.sum(~late))
        events, numbers = events[late], numbers[late]
    lengths = events["end"] - events["begin"]
    usual = lengths <= _INTERRUPTED * np.median(lengths) if len(events) else np.zeros(0, bool)
    return Steps(
        numbers[usual],
        events["begin"][usual],
        events["end"][usual],
        interrupted=int(np.sum(~usual)),
        warming=warming,
        unrecorded=unrecorded,
    )


def all_steps(workers: List[ProcessTrace], until: Optional[int] = None) -> List[Steps]:
    """Of each worker, in their order; `until` as in `steps_of`."""
    return [steps_of(worker, until) for worker in workers]
