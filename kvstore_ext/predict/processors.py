"""What a host's processors do beside the network's own computing."""
from __future__ import annotations

import heapq
from typing import Any, Callable, List

from .events import Events


class Processors:
    """Take tasks in the order in which these come, each one at a time.

    Attributes
    ----------
    busy : float
        Seconds so far, of all.
    count : int
    """

    def __init__(self, events: Events, count: int) -> None:
        self._events = events
        self.count = count
        self.busy = 0.0
        self._free: List[float] = [0.0] * count

    def do(self, seconds: float, then: Callable[[Any], None], argument: Any) -> None:
        """Computes for so long as soon as one is free; `then` is called with the argument."""
        if seconds <= 0:
            then(argument)
            return
        events = self._events
        free = max(self._free[0], events.now) + seconds
        heapq.heapreplace(self._free, free)
        self.busy += seconds
        events.at(free, then, argument)
