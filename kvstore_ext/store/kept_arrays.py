"""Where a script has its parameters, which store.join brings up to date."""
from __future__ import annotations

from typing import Dict, ItemsView, Set

from ..keys.key_policy import Values
from ..keys.names import Key


class KeptArrays:
    """By key, the arrays into which a script has first pulled it after its last push: what it
    pulls into others in between, to look at, say, are not its parameters."""

    def __init__(self) -> None:
        self._kept: Dict[Key, Values] = {}
        self._pushed: Set[Key] = set()  # and not pulled since

    def push(self, name: Key) -> None:
        """The key has a first value, or was pushed."""
        self._pushed.add(name)

    def pull(self, name: Key, arrays: Values) -> None:
        """The key's value was pulled into these arrays."""
        if name in self._pushed:
            self._pushed.remove(name)
            self._kept[name] = arrays

    def items(self) -> ItemsView[Key, Values]:
        """The keys that were pulled, and where they are."""
        return self._kept.items()
