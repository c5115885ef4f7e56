"""How the lane hands messages to a connection: in which order, and how many bytes at a time."""
from __future__ import annotations

import heapq
from typing import Any, Callable, List, Tuple

from .windows import PartsAtATime
from .wires import Connection

Then = Callable[[Any], None]
HEADER = 48  # bytes that a message counts at the least (csrc/transport/message.h)


class LaneQueue:
    """The lane's, for one peer: what is most urgent first, and few bytes under way.

    What is under way can no longer be overtaken. The peer acknowledges each part on receipt. (A
    server may do so with its next result, csrc/transport/link.cc: no replay took longer for it.)

    Parameters
    ----------
    connection : Connection
    window : PartsAtATime
        Bytes of a part at most, and of all that may be under way; one part always may.
    wake : float
        Seconds by which the sender's thread comes late to an answer.
    """

    def __init__(self, connection: Connection, window: PartsAtATime, wake: float) -> None:
        self._connection, self._window = connection, window
        self._wake = wake
        self._events = connection.sender.events
        self._heap: List[Tuple[int, int, int, Any, Any]] = []
        self._count = 0
        self._under_way = 0

    def send(self, size: int, priority: int, then: Then, argument: Any) -> None:
        """Sends a message, lower priorities first; `then` when its last part has come."""
        for own in parts(size, self._window.part):
            self._count += 1
            size -= own
            last = None if size else then
            heapq.heappush(self._heap, (priority, self._count, max(own, HEADER), last, argument))
        self._send_what_fits()

    def _send_what_fits(self) -> None:
        heap, window = self._heap, self._window.bytes
        while heap and (not self._under_way or self._under_way + heap[0][2] <= window):
            _, _, size, then, argument = heapq.heappop(heap)
            self._under_way += size
            self._connection.send(size, self._arrived, (size, then, argument))

    def _arrived(self, part: Tuple[int, Any, Any]) -> None:
        size, then, argument = part
        self._events.at(self._connection.answered() + self._wake, self._acknowledged, size)
        if then is not None:
            then(argument)

    def _acknowledged(self, size: int) -> None:
        self._under_way -= size
        self._send_what_fits()


def parts(size: int, most: int) -> List[int]:
    """The bytes of a message's parts: about equal ones, of `most` at most."""
    count = max(1, -(-size // most))
    return [size * (number + 1) // count - size * number // count for number in range(count)]
