"""How stock P3 sends: one thread of a process, which stands still where a connection is full."""
from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Optional, Tuple

from .events import Events
from .heaps import PsLiteHeap
from .shares import Share
from .streams import Stream
from .wires import Connection

Then = Callable[[Any], None]
Message = Tuple[int, Then, Any]

_WATER_MARK = 10  # messages: DMLC_PS_WATER_MARK, as MXNet's launcher has it
_READ = 5  # after how many ZeroMQ tells of those that it has taken: half of that (pipe.cpp)
_SEND_BUFFER = 4 << 20  # bytes that Linux takes of a busy connection: the last of net.ipv4.tcp_wmem


class SharedQueue:
    """Of all messages of a process: the most urgent goes first, and all others wait behind it."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._heap = PsLiteHeap()
        self._full: Optional[Pipe] = None  # that the thread waits for
        self._message: Message
        self._woken = False

    def to(self, connection: Connection, share: Share) -> Pipe:
        """What sends to one peer."""
        return Pipe(self, Stream(connection, share), bool(connection.sent))

    def put(self, priority: int, pipe: Pipe, message: Message) -> None:
        """Takes a message for a peer. The thread looks for it when all of this moment are there."""
        self._heap.push(priority, (pipe, message))
        if not self._woken and self._full is None:
            self._woken = True
            self._events.at(self._events.now, self._work)

    def has_room(self, pipe: Pipe) -> None:
        """A pipe has said that it takes messages again."""
        if self._full is pipe:
            self._full = None
            pipe.write(self._message)
            self._work()

    def _work(self) -> None:
        self._woken = False
        while len(self._heap) and self._full is None:
            pipe, message = self._heap.pop()
            if pipe.is_full:
                self._full, self._message = pipe, message
            else:
                pipe.write(message)


class Pipe:
    """ZeroMQ's, to one peer of a process."""

    def __init__(self, queue: SharedQueue, stream: Stream, bounded: bool) -> None:
        self._queue, self._stream = queue, stream
        self._bounded = bounded  # a peer on the same host takes all at once
        self._messages: Deque[Message] = deque()
        self._written = self._read = self._told = 0
        stream.drained = self._read_what_fits

    @property
    def is_full(self) -> bool:
        """Whether it takes no message, as far as the writer knows."""
        return self._written - self._told >= _WATER_MARK

    def send(self, size: int, priority: int, then: Then, argument: Any) -> None:
        """Sends a message, lower priorities first; `then` when all of it has come."""
        self._queue.put(priority, self, (size, then, argument))

    def write(self, message: Message) -> None:
        """The thread writes a message."""
        if self._bounded:
            self._written += 1
        self._messages.append(message)
        self._read_what_fits()

    def _read_what_fits(self) -> None:
        tells = False
        while self._messages and self._stream.held < _SEND_BUFFER:
            size, then, argument = self._messages.popleft()
            self._stream.send(size, 0, then, argument)
            if self._bounded:
                self._read += 1
                if self._read % _READ == 0:
                    self._told, tells = self._read, True
        if tells:
            self._queue.has_room(self)
