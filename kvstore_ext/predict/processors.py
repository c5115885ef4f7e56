"""What a host's processors do beside the network's own computing."""
from __future__ import annotations

import heapq
from typing import Any, Callable, List

from .beside import ALONE, Beside
from .events import Events


class Processors:
    """Take tasks in the order in which these come, each one at a time.

    Parameters
    ----------
    events : Events
    count : int
    beside : Beside
        What else they do.

    Attributes
    ----------
    busy : float
        Seconds so far, of all.
    count : int
    """

    def __init__(self, events: Events, count: int, beside: Beside = ALONE) -> None:
        self._events, self._beside = events, beside
        self.count = count
        self.busy = 0.0
        self._free: List[float] = [0.0] * count

    def do(self, seconds: float, then: Callable[[Any], None], argument: Any) -> None:
        """Computes for so long as soon as one is free; `then` is called with the argument."""
        if seconds <= 0:
            then(argument)
            return
        events = self._events
        others = self._beside.add(seconds)
        if others:
            self._free = [free + others / self.count for free in self._free]
        free = max(self._free[0], events.now) + seconds
        heapq.heapreplace(self._free, free)
        self.busy += others + seconds
        events.at(free, then, argument)
