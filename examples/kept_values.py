"""What a script itself has of a run, beside what it trains."""
from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

from kvstore_ext.snapshots import Part


class KeptValues(SimpleNamespace, Part):
    """A script's values, by the names of attributes, of which the store's snapshots have each
    worker's."""

    name = "script"

    def own(self, rank: int) -> dict[str, Any]:
        """What a snapshot has of it."""
        return copy.deepcopy(vars(self))

    def put_back(self, shared: Any, own: dict[str, Any], is_own: bool) -> None:
        """Goes on from a snapshot."""
        vars(self).update(own)
