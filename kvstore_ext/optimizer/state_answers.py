"""A server's part in saving and loading optimizer states: what it answers server_states.py."""
from __future__ import annotations

from typing import Any, Dict, Protocol, Tuple

from ..protocol.question_desk import Answer, Answers
from ..protocol.state_format import arrays_from, build, flatten


class KeepsStates(Protocol):
    """Has the states of parts of keys, by their places (keys/key_parts.py)."""

    def state(self, place: Tuple[int, ...]) -> Tuple[Any, int]:
        """A state and how often it was updated; raises KeyError before the first update."""

    def set_state(self, place: Tuple[int, ...], state: Any, count: int) -> None:
        """Goes on from a state that `state` returned, here or elsewhere."""


def answers_of(keeper: KeepsStates) -> Answers:
    """What answers questions about the keeper's states: with an outline it takes one, without it
    hands one out."""

    def answer(asked: Dict[str, Any], data: bytes) -> Answer:
        place = tuple(asked["place"])
        if "outline" in asked:
            outline = asked["outline"]
            keeper.set_state(place, build(outline, arrays_from(outline, data)), asked["count"])
            return {}, b""
        try:
            state, count = keeper.state(place)
        except KeyError:
            return {"count": 0}, b""
        outline, arrays = flatten(state)
        return {"outline": outline, "count": count}, b"".join(a.tobytes() for a in arrays)

    return answer
