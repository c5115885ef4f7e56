"""Keys with row-sparse weights or gradients: they travel through MXNet's own store, by number."""
from __future__ import annotations

import math
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Optional

import mxnet as mx
import numpy as np
from mxnet.kvstore import KVStore

from ..errors import ArrayMismatch, KVStoreError
from ..keys.key_parts import KeyPart
from ..keys.key_policy import KeyPolicy, Values
from ..keys.names import Key, storage
from ..keys.sparse_rows import number_of, store_and_key
from ..lane.lane import Lane
from ..protocol.state_format import with_all_rows
from .pushes import Pushes


class SparseKey(KeyPolicy):
    """One such key, whose value MXNet's servers update.

    They hold all rows of it, from the beginning on: MXNet's cannot begin with fewer.

    Parameters
    ----------
    lane, pushes
        The store's.
    number
        The key's in MXNet's store.
    value
        Like its first value: dense where only the gradients are row-sparse.
    """

    def __init__(
        self, lane: Lane, pushes: Pushes, number: int, name: Key, value: mx.nd.NDArray
    ) -> None:
        super().__init__(name, value.shape, value.dtype)
        self._lane = lane
        self._pushes = pushes
        self.number = number
        self._value_stype = value.stype
        self._rows = mx.nd.arange(value.shape[0], dtype="int64", ctx=mx.cpu())
        self._pulled: Any = None  # all rows, for dense arrays; nothing until the first of those
        most = max(self._bytes(self.shape[0]))
        if most > lane.servers.most_bytes:
            raise KVStoreError(
                f"key {name!r} has row-sparse arrays, of which a server would have {most} bytes; "
                f"MXNet's own store, through which they travel, takes at most "
                f"{lane.servers.most_bytes}: start more servers"
            )

    def begin(self, value: mx.nd.NDArray, outs: Optional[Values], priority: int) -> None:
        everything = with_all_rows(value.tostype("default").as_in_context(mx.cpu()))
        with self._leaving(self.shape[0] if self._lane.rank == 0 else 0):
            self._lane.call_together(
                lambda: KVStore.init(self._lane.stock, self.number, everything),
                f"initialised key {self.name!r}{self._of_store}",
            )
        if outs:
            self.pull_rows(outs, self._rows, priority)

    @property
    def _of_store(self) -> str:
        """Of a further store it is said, whose keys may have the same names."""
        store, _ = store_and_key(self.number)
        return f" of store {store}" if store else ""

    def resume(self, value: mx.nd.NDArray) -> None:
        value.wait_to_read()
        self.begin(value, None, 0)

    def value(self) -> mx.nd.NDArray:
        """All rows, as a dense array."""
        found = self._no_rows()
        self.pull_rows(found, self._rows, 0)
        return mx.nd.cast_storage(found, stype="default")

    def _no_rows(self) -> mx.nd.sparse.RowSparseNDArray:
        return mx.nd.sparse.zeros("row_sparse", self.shape, mx.cpu(), self.dtype)

    def overwrite(self, value: mx.nd.NDArray) -> None:
        """Goes on from another value, rank 0's; to be called by all workers once servers expect
        it."""
        own = value if self._lane.rank == 0 else mx.nd.zeros_like(value)
        with self._leaving(self.shape[0]):
            KVStore.push(self._lane.stock, self.number, with_all_rows(own), 0)
            self._lane.wait_for_all()

    @contextmanager
    def _leaving(self, rows: int) -> Iterator[None]:
        """Meanwhile so many rows are on the way to the servers."""
        leaving = self._bytes(rows)
        self._lane.worker.stock_leaves(leaving)
        try:
            yield
        finally:
            self._lane.worker.stock_leaves([-size for size in leaving])

    def _bytes(self, rows: int) -> List[int]:
        """Of so many rows, at most, by server."""
        row = math.prod(self.shape[1:]) * np.dtype(self.dtype).itemsize
        found = [0] * self._lane.servers.count
        for part in self.parts():
            found[part.server] = min(rows, part.shape[0]) * row
        return found

    def parts(self) -> List[KeyPart]:
        """Which server has which rows."""
        width = math.prod(self.shape[1:])
        return [
            KeyPart(server, "rows", (self.number,), row * width, shape)
            for server, row, shape in self._lane.servers.deal(self.number, self.shape)
        ]

    def push(self, values: Values, priority: int) -> None:
        """Sends row-sparse gradients, summed over devices."""
        self._send_settings()
        self._lane.worker.push_after(values[0].handle.value, self.number, self._pushed)
        KVStore.push(self._lane.stock, self.number, values, priority)

    def push_nothing(self) -> None:
        """Takes part in a round of the others, for MXNet's servers count pushes. Settings stay as
        they are, as those of dense keys do."""
        self._pushes.count_one(self.name)
        self._lane.worker.meet_sparse(self.number, self._pushed)
        KVStore.push(self._lane.stock, self.number, self._no_rows())

    def _send_settings(self) -> None:
        """Of the optimizer, if there are new ones."""
        settings = self._pushes.sparse_settings(self.name)
        if settings:
            self._lane.wait_for_all()  # what was pushed before is to be updated as before
            self._lane.sparse_settings(self.number, settings)

    @property
    def _pushed(self) -> str:
        """What the worker does in a round, in words."""
        return f"pushed key {self.name!r}"

    def pull(self, outs: Values, priority: int) -> None:
        """Writes the value into dense arrays; row-sparse ones are left alone, as MXNet does."""
        dense = [out for out in outs if out.stype == "default"]
        if not dense:
            return
        if self._pulled is None:
            self._pulled = self._no_rows()
        self.pull_rows(self._pulled, self._rows, priority)
        value = mx.nd.cast_storage(self._pulled, stype="default")
        for out in dense:
            value.copyto(out)

    def pull_rows(self, out: Any, rows: Any, priority: int) -> None:
        count = sum(ids.size for ids in rows) if isinstance(rows, (list, tuple)) else rows.size
        KVStore.row_sparse_pull(self._lane.stock, self.number, out, priority, rows)
        for array in out if isinstance(out, (list, tuple)) else [out]:
            self._lane.worker.count_pull_until(
                array.handle.value, f"answered a pull of key {self.name!r}", self._bytes(count)
            )

    def check_push(self, values: Values, outs: Optional[Values]) -> None:
        for array in values:
            self._check(array, "row_sparse")

    def check_pull(self, outs: Values) -> None:
        for array in outs:
            if "default" in (self._value_stype, array.stype):
                self._check(array, "default")

    def _check(self, array: mx.nd.NDArray, stype: str) -> None:
        found = (array.stype, array.shape, array.dtype)
        if found != (stype, self.shape, self.dtype):
            raise ArrayMismatch(
                f"key {self.name!r}: got a {storage(array.stype)} array of shape {array.shape}, "
                f"{np.dtype(array.dtype).name}; it must be {storage(stype)} of shape "
                f"{self.shape}, {np.dtype(self.dtype).name}"
            )


class SparseKeys:
    """Gives a store's keys their numbers in MXNet's own store.

    Parameters
    ----------
    lane, pushes
        The store's.
    store
        Its number on the lane.
    """

    def __init__(self, lane: Lane, pushes: Pushes, store: int) -> None:
        self.keys: Dict[int, SparseKey] = {}  # by their numbers
        self._lane = lane
        self._pushes = pushes
        self._store = store

    def new(
        self, name: Key, position: int, value: mx.nd.NDArray, beside: Iterable[SparseKey] = ()
    ) -> SparseKey:
        """A key with a value like this one, which the store does not have before `add`.

        Parameters
        ----------
        position
            Its place among the store's keys.
        beside
            Keys that are to be added as well.

        Raises
        ------
        KVStoreError
            Where there is no number for it, or a server would have too much of it.
        """
        number = number_of(self._store, name, position)
        taken = {**self.keys, **{key.number: key for key in beside}}
        if number in taken:
            raise KVStoreError(
                f"sparse keys {name!r} and {taken[number].name!r} have the same number "
                f"{number}: a str has that of its position; use either numbers or words"
            )
        return SparseKey(self._lane, self._pushes, number, name, value)

    def add(self, key: SparseKey) -> None:
        """Has the store have the key; it is not begun yet."""
        self._lane.begin_sparse()
        self.keys[key.number] = key
