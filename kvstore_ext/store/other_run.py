"""The run of a further store of a script, in the snapshots of its first one: all are of one moment.
"""
from __future__ import annotations

import weakref
from typing import Any, Dict, List

from ..snapshots.part import About, Part
from ..snapshots.random_states import RandomStates

# A part's name and what it says of itself; what has nothing behind it tells that there is the part.
_BETWEEN = ": "


class OtherRun(Part):
    """All parts of another store's run but the random states, which are the process's.

    Parameters
    ----------
    store
        The other one, a SnapshotStore. It is not kept alive.
    """

    def __init__(self, store: Any) -> None:
        self.name = f"store {store.number}"
        self._store: Any = weakref.ref(store)

    @property
    def gone(self) -> bool:
        store = self._store()
        return store is None or store.closed

    def may_replace(self, other: Part) -> bool:
        return isinstance(other, OtherRun)

    def holds(self, store: Any) -> bool:
        """Whether this is the run of a store, or has that in it."""
        parts = self._parts().values()
        inner = any(isinstance(part, OtherRun) and part.holds(store) for part in parts)
        return self._store() is store or inner

    def about(self) -> About:
        return {
            f"{name}{_BETWEEN}{what}": value
            for name, part in self._parts().items()
            for what, value in {"": "", **part.about()}.items()
        }

    def missing(self, saved: About) -> List[str]:
        parts = self._parts()
        inner = [
            each for name, part in parts.items() for each in part.missing(_of_part(name, saved))
        ]
        known = tuple(f"{name}{_BETWEEN}" for name in parts)
        told = [what for what, value in saved.items() if what.endswith(_BETWEEN) and not value]
        return [what[: -len(_BETWEEN)] for what in told if not what.startswith(known)] + inner

    def prepare(self, saved: About) -> None:
        if saved:  # not what the script has added since
            for name, part in self._parts().items():
                part.prepare(_of_part(name, saved))

    def check(self, saved: About) -> None:
        if saved:
            for name, part in self._parts().items():
                part.check(_of_part(name, saved))

    def shared(self) -> Any:
        found = {name: part.shared() for name, part in self._parts().items()}
        return {"steps": self._store().steps, "parts": found}

    def own(self, rank: int) -> Any:
        return {name: part.own(rank) for name, part in self._parts().items()}

    def put_back(self, shared: Any, own: Any, is_own: bool) -> None:
        for name, part in self._parts().items():
            if name in own:
                part.put_back(shared["parts"][name], own[name], is_own)
        self._store().go_on_from(shared["steps"])

    def _parts(self) -> Dict[str, Part]:
        parts = self._store().parts_in_snapshots()
        return {name: part for name, part in parts.items() if name != RandomStates.name}


def _of_part(name: str, saved: About) -> About:
    prefix = f"{name}{_BETWEEN}"
    return {
        what[len(prefix) :]: value
        for what, value in saved.items()
        if what.startswith(prefix) and what != prefix
    }
