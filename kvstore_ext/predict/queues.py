"""How a process hands messages to its connections: in which order, and how many at a time."""
from __future__ import annotations

import heapq
from typing import Any, Callable, List, Tuple

from .wires import Connection

Then = Callable[[Any], None]
HEADER = 48  # bytes that a message counts at the least (csrc/transport/message.h)


class LaneQueue:
    """The lane's, for one peer: what is most urgent first, and few bytes under way.

    What is under way can no longer be overtaken. The peer acknowledges each part on receipt
    (csrc/transport/link.cc). Without priorities and with TCP's window it is a stock connection.

    Parameters
    ----------
    connection : Connection
    part, window : int
        Bytes of a part at most, 0 for TCP's segments, and of all that may be under way; one part
        always may.
    wake : float
        Seconds by which the sender's thread comes late to an answer.
    """

    def __init__(self, connection: Connection, part: int, window: int, wake: float) -> None:
        self._connection, self._window = connection, window
        self._part = part
        self._wake = wake
        self._events = connection.sender.events
        self._heap: List[Tuple[int, int, int, Any, Any]] = []
        self._count = 0
        self._under_way = 0

    def send(self, size: int, priority: int, then: Then, argument: Any) -> None:
        """Sends a message, lower priorities first; `then` when its last part has come."""
        for own in parts(size, self._part, self._connection):
            self._count += 1
            size -= own
            last = None if size else then
            heapq.heappush(self._heap, (priority, self._count, max(own, HEADER), last, argument))
        self._send_what_fits()

    def _send_what_fits(self) -> None:
        heap, window = self._heap, self._window
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


def parts(size: int, most: int, connection: Connection) -> List[int]:
    """The bytes of a message's parts: about equal ones, of `most` at most, or TCP's segments."""
    if most:
        count = max(1, -(-size // most))
        return [size * (number + 1) // count - size * number // count for number in range(count)]
    segment = connection.segment()
    return [min(segment, size - begin) for begin in range(0, size, segment)]


class SharedQueue:
    """Stock P3's, for all peers of a process: the most urgent message goes first, and where its
    peer's connection is full, all others wait behind it.

    Parameters
    ----------
    most : int
        Messages that a connection takes: the high-water mark.
    answer : float
        Seconds from a message's arrival until the sender knows.
    """

    def __init__(self, most: int, answer: float) -> None:
        self._most, self._answer = most, answer
        self._heap: List[Tuple[int, int, int, Any, Any, SharedConnection]] = []
        self._count = 0

    def to(self, connection: Connection) -> SharedConnection:
        """What sends to one peer."""
        return SharedConnection(self, connection)

    def put(self, entry: Tuple[int, int, Any, Any, SharedConnection]) -> None:
        """Takes a message: its priority, size, `then`, argument and connection."""
        self._count += 1
        priority, size, then, argument, connection = entry
        heapq.heappush(self._heap, (priority, self._count, size, then, argument, connection))
        self.send_what_fits()

    def send_what_fits(self) -> None:
        """Hands messages to connections until one is full."""
        while self._heap and self._heap[0][5].messages < self._most:
            _, _, size, then, argument, connection = heapq.heappop(self._heap)
            connection.begin(size, self._answer, then, argument)


class SharedConnection:
    """To one peer, of a process's queue."""

    def __init__(self, queue: SharedQueue, connection: Connection) -> None:
        self._queue, self._connection = queue, connection
        self._events = connection.sender.events
        self.messages = 0  # under way

    def send(self, size: int, priority: int, then: Then, argument: Any) -> None:
        """Sends a message, lower priorities first; `then` when all of it has come."""
        self._queue.put((priority, size, then, argument, self))

    def begin(self, size: int, answer: float, then: Then, argument: Any) -> None:
        """Hands a message to the connection."""
        self.messages += 1
        for own in parts(size, 0, self._connection):
            size -= own
            self._connection.send(own, self._arrived, (not size, answer, then, argument))

    def _arrived(self, chunk: Tuple[bool, float, Then, Any]) -> None:
        last, answer, then, argument = chunk
        if last:
            self._events.at(self._events.now + answer, self._acknowledged)
            then(argument)

    def _acknowledged(self) -> None:
        self.messages -= 1
        self._queue.send_what_fits()
