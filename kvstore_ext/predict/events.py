"""What happens next: the heart of the simulation."""
from __future__ import annotations

import heapq
from typing import Any, Callable, List, Tuple


class Events:
    """Calls functions at the times that they were put down for.

    Attributes
    ----------
    now : float
        Seconds since the beginning.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: List[Tuple[float, int, Callable[..., None], Tuple[Any, ...]]] = []
        self._count = 0  # those of one time happen in the order in which they were put down

    def at(self, seconds: float, act: Callable[..., None], *arguments: Any) -> None:
        """Has a function called at a time, which is not before now."""
        self._count += 1
        heapq.heappush(self._heap, (seconds, self._count, act, arguments))

    def run(self) -> None:
        """Lets happen whatever was put down, until nothing is left."""
        heap, pop = self._heap, heapq.heappop
        while heap:
            self.now, _, act, arguments = pop(heap)
            act(*arguments)
