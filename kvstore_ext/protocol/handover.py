"""What one worker leaves on the servers for others, which have missed rounds (store.join), to take.

It lies on a server by name from `leave` until `clear`. Everybody knows the names, and when what is
there: the caller sees to that, with barriers.
"""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from .. import _core
from .question_desk import Answer
from .questions import answers_to, ask
from .state_format import flatten
from .state_pieces import Arrivals, Arriving, Fetching, Sending, finish_all, whole

HANDOVER = "handover"


class Shelf:
    """A server's part. Only the thread that answers questions calls it."""

    def __init__(self) -> None:
        self._arrivals = Arrivals()
        self._left: Dict[str, Tuple[Any, Arriving]] = {}  # note and state

    def answer(self, asked: Dict[str, Any], data: bytes) -> Answer:
        """Takes what comes with an outline, hands out what is asked for by name, or clears all."""
        if "clear" in asked:
            self._left.clear()
            return {}, b""
        name = asked["name"]
        if "outline" in asked:
            arrived = self._arrivals.take(name, asked, data)
            if arrived is not None:
                self._left[name] = asked["note"], arrived
            return {}, b""
        if name not in self._left:
            return {"nothing": True}, b""
        note, left = self._left[name]
        return {"outline": left.outline, "note": note}, left.piece(asked)


class Handover:
    """A worker's part.

    Parameters
    ----------
    worker
        The lane.
    servers
        How many there are: each has a part of the names.
    """

    def __init__(self, worker: _core.Worker, servers: int) -> None:
        self._worker = worker
        self._servers = servers
        self._sent: List[Sending] = []

    def leave(self, name: str, state: Any = None, note: Any = None) -> None:
        """Leaves a state (state_format.py), and a note that json can carry; returns at once."""
        outline, arrays = flatten(state)
        what = {"name": name, "note": note}
        server = self._server_of(name)
        self._sent.append(Sending(self._worker, server, HANDOVER, what, outline, whole(arrays)))

    def settle(self) -> None:
        """Returns when all that was left lies there."""
        sent, self._sent = self._sent, []
        finish_all(sent)

    def take(self, name: str) -> Optional[Tuple[Any, Any]]:
        """State, on the CPU, and note of a name; None where nothing was left under it."""
        asked = {"name": name}
        fetching = Fetching(self._worker, self._server_of(name), HANDOVER, asked)
        answer, arrived = fetching.finish()
        return None if arrived is None else (arrived.state(), answer["note"])

    def clear(self) -> None:
        """Has the servers forget all."""
        asked = [
            ask(self._worker, server, HANDOVER, {"clear": True}) for server in range(self._servers)
        ]
        answers_to(self._worker, asked)

    def _server_of(self, name: str) -> int:
        return sum(name.encode()) % self._servers
