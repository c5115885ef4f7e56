"""A server's part in saving and loading optimizer states: what it answers server_states.py."""
from __future__ import annotations

from typing import Any, Dict, Protocol, Tuple

from ..protocol.question_desk import Answer, Answers
from ..protocol.state_pieces import Arrivals, piece_of


class KeepsStates(Protocol):
    """Has the states of parts of keys, by their places (keys/key_parts.py)."""

    def state(self, place: Tuple[int, ...]) -> Tuple[Any, int]:
        """A state and how often it was updated; raises KeyError before the first update."""

    def set_state(self, place: Tuple[int, ...], state: Any, count: int) -> None:
        """Goes on from a state that `state` returned, here or elsewhere."""


def answers_of(keeper: KeepsStates) -> Answers:
    """What answers questions about the keeper's states: with an outline it takes one, without it
    hands one out."""
    arrivals = Arrivals()

    def answer(asked: Dict[str, Any], data: bytes) -> Answer:
        place = tuple(asked["place"])
        if "outline" in asked:
            arrived = arrivals.take(place, asked, data)
            if arrived is not None:
                keeper.set_state(place, arrived.state(), asked["count"])
            return {}, b""
        try:
            state, count = keeper.state(place)
        except KeyError:
            return {"count": 0}, b""
        outline, piece = piece_of(state, asked)
        return {"outline": outline, "count": count}, piece

    return answer
