"""What a host sends and receives, by the counters of its interface."""
from __future__ import annotations

import threading
import time
from typing import Any, Dict, List, Sequence, Tuple

from benchmarks.cluster.namespaces import own_counters

Mark = Tuple[float, int, int]  # seconds, bytes sent and received until then


def mark() -> Mark:
    """The time, and the bytes that this host has sent and received, as its interface counts them:
    with one header for a segment of up to 64 KiB, where the link carries one for each 1448 bytes,
    which are up to 4 % more."""
    numbers = own_counters()
    return time.perf_counter(), numbers[8], numbers[0]


def between(marks: Sequence[Mark]) -> List[List[float]]:
    """Seconds, and bytes sent and received, each from every mark to the next."""
    return [
        [after - before for before, after in zip(series, series[1:])] for series in zip(*marks)
    ]


class Sampler:
    """Marks in regular intervals, by a thread of its own, from the start to `rates`.

    Parameters
    ----------
    sample : float
        Seconds of the replayed device from one mark to the next.
    dilation : float
        How much longer everything takes here.
    """

    def __init__(self, sample: float, dilation: float) -> None:
        self._sample, self._dilation = sample, dilation
        self._marks: List[Mark] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def rates(self, begin: float) -> Dict[str, Any]:
        """Ends it; what passed since a time of `mark`.

        Returns
        -------
        dict
            `sample`, and for each of these intervals `sent` and `received`: Gbit/s of the replayed
            device.
        """
        self._ended.set()
        self._thread.join()
        marks = [each for each in self._marks if each[0] >= begin]
        pairs = list(zip(marks, marks[1:]))

        def rate(way: int) -> List[float]:
            gigabits = 8e-9 * self._dilation
            return [
                round(gigabits * (after[way] - before[way]) / (after[0] - before[0]), 3)
                for before, after in pairs
            ]

        return {"sample": self._sample, "sent": rate(1), "received": rate(2)}

    def _work(self) -> None:
        interval = self._sample * self._dilation
        begun = time.perf_counter()
        self._marks.append(mark())
        while True:
            # The next multiple of the interval: one that is late makes no other late.
            passed = time.perf_counter() - begun
            if self._ended.wait(interval - passed % interval):
                return
            self._marks.append(mark())
