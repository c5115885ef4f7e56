"""A connection as MXNet's own stores use it: what TCP has under way is not quite alike."""
from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Optional, Tuple

from .shares import Share
from .wires import Connection

Then = Callable[[Any], None]
_PART = 32768  # bytes, two of which are under way: all share a wire, part by part
_ALIKE = Share(0.0, 0)


class Stream:
    """Sends messages in their order, in parts, and a window of two of them.

    Parameters
    ----------
    connection : Connection
    share : Share
        Of the wire: by how much its parts are larger or smaller than others'.

    Attributes
    ----------
    held : int
        Bytes that were handed over and are not yet acknowledged.
    drained : callable, optional
        Called whenever these have become fewer.
    """

    def __init__(self, connection: Connection, share: Share = _ALIKE) -> None:
        self._connection, self._share = connection, share
        self._events = connection.sender.events
        self._messages: Deque[Tuple[int, Then, Any]] = deque()
        self._left = 0  # bytes of the first of them that have not been sent
        self._under_way = 0
        self.held = 0
        self.drained: Optional[Callable[[], None]] = None

    def send(self, size: int, _priority: int, then: Then, argument: Any) -> None:
        """Sends a message; `then` is called with the argument when all of it has come."""
        if not self._connection.sent:
            self._connection.send(size, then, argument)
            return
        self.held += size
        if not self._messages:
            self._left = size
        self._messages.append((size, then, argument))
        self._send_what_fits()

    def _send_what_fits(self) -> None:
        messages = self._messages
        if not messages:
            return
        share = self._share.at(self._events.now)
        part = max(2000, int(_PART * share))
        while messages and self._under_way + min(part, self._left) <= 2 * part:
            own = min(part, self._left)
            self._left -= own
            self._under_way += own
            last = None
            if not self._left:
                last = messages.popleft()
                self._left = messages[0][0] if messages else 0
            self._connection.send(own, self._arrived, (own, last))

    def _arrived(self, part: Tuple[int, Optional[Tuple[int, Then, Any]]]) -> None:
        size, last = part
        self._events.at(self._connection.answered(), self._acknowledged, size)
        if last is not None:
            _, then, argument = last
            then(argument)

    def _acknowledged(self, size: int) -> None:
        self._under_way -= size
        self.held -= size
        if self.drained is not None:
            self.drained()
        self._send_what_fits()
