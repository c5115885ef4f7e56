"""Several tasks one after the other in a job of MXNet's own store, of which a process has one."""
from __future__ import annotations

from typing import Any

import mxnet as mx


class OwnKeys(mx.kvstore.KVStore):
    """MXNet's store as a task sees it that has the servers' keys for itself.

    The servers number keys in the order in which they come, and know multipliers and decay by that
    number alone: of all tasks only the first one's are what they would be without the others.
    """

    def __init__(self, store: mx.kvstore.KVStore, task: str) -> None:
        super().__init__(store.handle)
        self._store = store  # which frees the handle
        self._task = task

    def __del__(self) -> None:
        pass

    def _own(self, key: Any) -> str:
        return f"{self._task}/{key}"

    def init(self, key: Any, value: Any) -> None:
        super().init(self._own(key), value)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        super().broadcast(self._own(key), value, out, priority)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        super().push(self._own(key), value, priority)

    def pull(self, key: Any, out: Any, priority: int = 0, ignore_sparse: bool = True) -> None:
        super().pull(self._own(key), out, priority, ignore_sparse)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        super().pushpull(self._own(key), value, out, priority)
