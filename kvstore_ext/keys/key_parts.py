"""The parts in which a key lies on the servers."""
from __future__ import annotations

from dataclasses import dataclass
from typing import List, Protocol, Tuple


@dataclass(frozen=True)
class KeyPart:
    """A part of a key: what one server has of it, from element `begin` on.

    kind
        What the server has it as: "slice" or "rows".
    place
        How the server finds it among those.
    """

    server: int
    kind: str
    place: Tuple[int, ...]
    begin: int
    shape: Tuple[int, ...]


class Parted(Protocol):
    """A key that lies on the servers in parts."""

    @property
    def shape(self) -> Tuple[int, ...]:
        """The whole key's."""

    def parts(self) -> List[KeyPart]:
        """In the order of their elements."""
