"""Where a script has its parameters, which store.join brings up to date."""
from __future__ import annotations

from typing import Dict, ItemsView, Optional, Set

from ..keys.key_policy import Values
from ..keys.names import Key


class KeptArrays:
    """By key, the arrays into which a script has first pulled it after its last push, or where it
    has had its first value written: what it pulls into others in between, to look at, say, are not
    its parameters."""

    def __init__(self) -> None:
        self._kept: Dict[Key, Values] = {}
        self._new: Set[Key] = set()  # have a value that was not pulled yet
        self._trained: Set[Key] = set()

    def begin(self, name: Key, arrays: Optional[Values]) -> None:
        """The key has a first value, which is written into these arrays, if any."""
        self._new.add(name)
        if arrays:
            self._kept[name] = arrays

    def push(self, name: Key) -> None:
        """The key was pushed."""
        self._new.add(name)
        self._trained.add(name)

    def miss(self, name: Key) -> None:
        """Others have pushed the key."""
        self._trained.add(name)

    def pull(self, name: Key, arrays: Values) -> None:
        """The key's value was pulled into these arrays."""
        if name in self._new:
            self._new.remove(name)
            self._kept[name] = arrays

    def is_trained(self, name: Key) -> bool:
        """Whether anybody has pushed the key."""
        return name in self._trained

    def items(self) -> ItemsView[Key, Values]:
        """The keys of which this is known, and where they are."""
        return self._kept.items()
