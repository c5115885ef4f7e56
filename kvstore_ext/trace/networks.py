"""Who looks at this process's networks while it is traced: mxnet_hooks, which tells this room."""
from __future__ import annotations

from typing import Any, Callable, List, Optional

Look = Callable[[Optional[Any]], None]


class Networks:
    """Has everybody who knows networks of one kind look at them for the worker that is traced."""

    def __init__(self) -> None:
        self._looks: List[Look] = []
        self._watching: Optional[Any] = None

    def add(self, look: Look) -> None:
        """Has look(worker) called when a worker is traced, and look(None) when that ends.

        The worker, `_core.Worker`, takes what is seen: watch_network, watch_executor, mark_layer.
        """
        self._looks.append(look)

    def watch(self, worker: Any) -> None:
        """Begins, for the worker that is traced from now on."""
        self._look(worker)

    def end(self, worker: Any) -> None:
        """Ends, unless another worker is traced by now."""
        if self._watching is worker:
            self._look(None)

    def _look(self, worker: Optional[Any]) -> None:
        self._watching = worker
        for look in self._looks:
            look(worker)


networks = Networks()
