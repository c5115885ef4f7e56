"""Links between hosts: connections share a wire to the switch, and another one from it.

A connection's bytes leave in order. Connections of one host take turns, part by part, as TCP's
share a wire. A part that leaves flows through the switch while it leaves: the receiving wire is
busy with it as long again, and has it at the earliest when it has left.
"""
from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Tuple

from .beside import ALONE, Beside
from .events import Events
from .network import FRAMES

Then = Callable[[Any], None]
_ANSWER = 200  # bytes of a message without data, with the headers of ps-lite, ZeroMQ and TCP


class Wire:
    """One way of a host's link.

    Parameters
    ----------
    rate : float
        Bytes a second, headers counted.
    beside : Beside
        What else it carries.
    """

    def __init__(self, rate: float, beside: Beside = ALONE) -> None:
        self.rate = rate
        self._byte = FRAMES / rate  # seconds
        self.free = 0.0
        self.busy = 0.0  # seconds so far
        self._beside = beside

    def take(self, now: float, size: float) -> float:
        """Carries so many bytes as soon as it is free; returns when it has."""
        seconds = size * self._byte
        others = self._beside.add(seconds)
        self.free = max(self.free + others, now) + seconds
        self.busy += others + seconds
        return self.free

    def seconds(self, size: float) -> float:
        """That so many bytes take."""
        return size * self._byte


class Connection:
    """From a process to another.

    Parameters
    ----------
    sender : Sender
        Of the host that it leaves.
    receiver : Sender
        Of the host that it reaches, by which answers come back.
    wire, back : Wire
        That it reaches that host by, and that answers reach this one by.
    delay : float
        Seconds between.
    sent, received : float
        By what a part's bytes count on either wire: 0 within a host, and more than 1 where it
        stands for several connections that carry the same at a time.
    """

    __slots__ = (
        "back",
        "delay",
        "parts",
        "received",
        "receiver",
        "sender",
        "sent",
        "waits",
        "wire",
    )

    def __init__(
        self,
        sender: Sender,
        wire: Wire,
        receiver: Sender,
        back: Wire,
        delay: float,
        sent: float = 1.0,
        received: float = 1.0,
    ) -> None:
        self.sender, self.wire, self.delay = sender, wire, delay
        self.receiver, self.back = receiver, back
        self.sent, self.received = sent, received
        self.parts: Deque[Tuple[int, Then, Any]] = deque()
        self.waits = False  # in the sender's turns

    def send(self, size: int, then: Then, argument: Any) -> None:
        """Has bytes leave after those before; `then` is called with the argument on arrival."""
        if not self.sent:
            self.sender.events.at(self.sender.events.now, then, argument)
            return
        self.parts.append((size, then, argument))
        self.sender.has(self, size * self.sent)

    def answered(self) -> float:
        """When a small answer that the receiver sends now is here: it leaves behind all that is
        in the wires' queues, and takes little of them itself."""
        now = self.sender.events.now
        if not self.sent:
            return now
        left = self.receiver.cleared() + self.receiver.wire.seconds(_ANSWER)
        self.receiver.wire.take(now, _ANSWER * self.received)
        return max(left + self.delay, self.back.free)


class Sender:
    """A host's wire to the switch, which connections take turns on."""

    def __init__(self, events: Events, wire: Wire) -> None:
        self.events, self.wire = events, wire
        self._turns: Deque[Connection] = deque()
        self._sends = False
        self._waiting = 0.0  # bytes

    def cleared(self) -> float:
        """When all that is to leave now has."""
        return max(self.wire.free, self.events.now) + self.wire.seconds(self._waiting)

    def has(self, connection: Connection, size: float) -> None:
        """A connection has something to send, of so many bytes on the wire."""
        self._waiting += size
        if not connection.waits:
            connection.waits = True
            self._turns.append(connection)
        if not self._sends:
            self._sends = True
            self._next()

    def _next(self) -> None:
        if not self._turns:
            self._sends = False
            return
        connection = self._turns.popleft()
        size, then, argument = connection.parts.popleft()
        if connection.parts:
            self._turns.append(connection)
        else:
            connection.waits = False
        events, wire = self.events, connection.wire
        self._waiting -= size * connection.sent
        left = self.wire.take(events.now, size * connection.sent)
        begun = left - self.wire.seconds(size * connection.sent)
        there = wire.take(begun + connection.delay, size * connection.received)
        events.at(max(there, left + connection.delay), then, argument)
        events.at(left, self._next)
