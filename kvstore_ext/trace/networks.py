"""The networks of this process whose layers a trace can tell of: those that are hybridized."""
from __future__ import annotations

import weakref
from typing import Any, Callable, Optional


class Networks:
    """Knows each network once MXNet has compiled it, and tells a watcher of all of them."""

    def __init__(self) -> None:
        self._blocks: weakref.WeakSet = weakref.WeakSet()
        self._watch: Optional[Callable[[int], None]] = None

    def compiled(self, block: Any) -> None:
        """A Gluon block has a new CachedOp, in `_cached_op`."""
        self._blocks.add(block)
        self._tell(block)

    def watch(self, watch: Optional[Callable[[int], None]]) -> None:
        """Has watch(handle) called with the CachedOp of every network, now and later; None ends
        that."""
        self._watch = watch
        for block in list(self._blocks):
            self._tell(block)

    def _tell(self, block: Any) -> None:
        operator = getattr(block, "_cached_op", None)
        if self._watch is not None and operator is not None:
            self._watch(operator.handle.value)


networks = Networks()
