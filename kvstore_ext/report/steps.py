"""The steps that a report counts, worker by worker."""
from __future__ import annotations

from dataclasses import dataclass
from typing import List

import numpy as np

from ..trace.events import Kind
from ..trace.reading import ProcessTrace

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
    """

    numbers: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    interrupted: int = 0
    warming: int = 0

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
        if not len(self.numbers):
            return np.full(np.shape(times), -1)
        place = np.searchsorted(self.begins, times, side="left") - 1
        inside = (place >= 0) & (times <= self.ends[np.maximum(place, 0)])
        return np.where(inside, place, -1)


def steps_of(worker: ProcessTrace) -> Steps:
    """Its steps in order, without those that warm up or were interrupted."""
    events = worker.of_kind(Kind.STEP)
    events = events[np.argsort(events["begin"], kind="stable")]
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
    )


def all_steps(workers: List[ProcessTrace]) -> List[Steps]:
    """Of each worker, in their order."""
    return [steps_of(worker) for worker in workers]
