"""What one worker leaves on the servers for others, which have missed rounds (store.join), to take.

It lies on a server by name from `leave` until `clear`. Everybody knows the names, and when what is
there: the caller sees to that, with barriers.
"""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from .. import _core
from .question_desk import Answer
from .questions import answer_to, ask
from .state_format import arrays_from, build, flatten

HANDOVER = "handover"


class Shelf:
    """A server's part. Only the thread that answers questions calls it."""

    def __init__(self) -> None:
        self._left: Dict[str, Tuple[Dict[str, Any], bytes]] = {}

    def answer(self, asked: Dict[str, Any], data: bytes) -> Answer:
        """Takes what comes with an outline, hands out what is asked for by name, or clears all."""
        if "clear" in asked:
            self._left.clear()
            return {}, b""
        if "outline" in asked:
            self._left[asked["name"]] = (asked, data)
            return {}, b""
        return self._left.get(asked["name"], ({"nothing": True}, b""))


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
        self._asked: List[int] = []

    def leave(self, name: str, state: Any = None, note: Any = None) -> None:
        """Leaves a state (state_format.py), and a note that json can carry; returns at once."""
        outline, arrays = flatten(state)
        data = b"".join(array.tobytes() for array in arrays)
        what = {"name": name, "outline": outline, "note": note}
        self._asked.append(ask(self._worker, self._server_of(name), HANDOVER, what, data))

    def settle(self) -> None:
        """Returns when all that was left lies there."""
        for question in self._asked:
            answer_to(self._worker, question)
        self._asked.clear()

    def take(self, name: str) -> Optional[Tuple[Any, Any]]:
        """State, on the CPU, and note of a name; None where nothing was left under it."""
        question = ask(self._worker, self._server_of(name), HANDOVER, {"name": name})
        answer, data = answer_to(self._worker, question)
        if "nothing" in answer:
            return None
        return build(answer["outline"], arrays_from(answer["outline"], data)), answer["note"]

    def clear(self) -> None:
        """Has the servers forget all."""
        for server in range(self._servers):
            self._asked.append(ask(self._worker, server, HANDOVER, {"clear": True}))
        self.settle()

    def _server_of(self, name: str) -> int:
        return sum(name.encode()) % self._servers
