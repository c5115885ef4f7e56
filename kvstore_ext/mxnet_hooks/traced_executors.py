"""Layers of symbolic networks for a trace, Module's: MXNet itself tells of their operators."""
from __future__ import annotations

import weakref
from typing import Any, Callable, Optional

import mxnet as mx

from .. import _core


class TracedExecutors:
    """Has the core watch each executor that runs, unless the script watches it with a Monitor."""

    def __init__(self) -> None:
        self._watched: weakref.WeakSet = weakref.WeakSet()
        self._worker: Optional[_core.Worker] = None

    def install(self) -> None:
        """Has Executor.forward tell of the executor first."""
        run: Callable[..., Any] = mx.executor.Executor.forward

        def forward(executor: mx.executor.Executor, *arguments: Any, **named: Any) -> Any:
            if self._worker is not None:
                self._watch(self._worker, executor)
            return run(executor, *arguments, **named)

        mx.executor.Executor.forward = forward

    def look(self, worker: Optional[_core.Worker]) -> None:
        """Watches for this worker all that run from now on."""
        self._worker = worker
        self._watched.clear()

    def _watch(self, worker: _core.Worker, executor: mx.executor.Executor) -> None:
        if executor not in self._watched and executor._monitor_callback is None:
            self._watched.add(executor)
            worker.watch_executor(executor.handle.value)
