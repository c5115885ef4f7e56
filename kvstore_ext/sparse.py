"""Keys with row-sparse weights or gradients: they travel through MXNet's own store, by number."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Tuple

import mxnet as mx
import numpy as np
from mxnet.kvstore import KVStore

from .errors import ArrayMismatch, KVStoreError
from .keys import Key, storage
from .settings import Multipliers, SettingsFollower

# MXNet's store has one space of numbers for all stores of a process; each gets a part of it. From
# 215,325 on, MXNet picks servers that do not exist (it multiplies by 9973, in an int).
_FIRST_STORES = 100_000
_OTHER_STORES = 1024
_LIMIT = 215_000


def number_of(store: int, name: Key, position: int) -> int:
    """A key's number: its own if it is one, otherwise its position among the store's keys, by which
    MXNet's optimizers know parameters too.

    Raises
    ------
    KVStoreError
        For one out of range, or a store beyond those that have numbers.
    """
    own = name if isinstance(name, int) else position
    begin = 0 if store == 0 else _FIRST_STORES + (store - 1) * _OTHER_STORES
    most = _FIRST_STORES if store == 0 else _OTHER_STORES
    if not 0 <= own < most or begin + most > _LIMIT:
        raise KVStoreError(
            f"a key with sparse arrays is {own}, in store {store} of this process; it must be 0 to "
            f"{most - 1}, in one of the first {(_LIMIT - _FIRST_STORES) // _OTHER_STORES} stores"
        )
    return begin + own


def _store_and_key(number: int) -> Tuple[int, int]:
    if number < _FIRST_STORES:
        return 0, number
    store, own = divmod(number - _FIRST_STORES, _OTHER_STORES)
    return store + 1, own


@dataclass(frozen=True)
class Servers:
    """MXNet's servers: arrays with as many elements as `big_array` are dealt to all of them.

    `flat`: they keep rows as vectors, whatever the shape.
    """

    count: int
    big_array: int
    flat: bool


def with_all_rows(dense: mx.nd.NDArray) -> mx.nd.NDArray:
    """A row-sparse array that holds rows of zeros too, which MXNet's own conversion leaves out."""
    rows = mx.nd.arange(dense.shape[0], dtype="int64")
    return mx.nd.sparse.row_sparse_array((dense, rows), shape=dense.shape, dtype=dense.dtype)


class SparseKey:
    """One such key.

    The servers hold all rows of its value, from the beginning on: MXNet's cannot begin with fewer.

    Parameters
    ----------
    stock
        MXNet's own store.
    value
        The first value, rank 0's of which counts; dense where only the gradients are row-sparse.
    servers
        How MXNet deals rows to them.
    call
        Makes a call that may wait for the other workers.
    """

    def __init__(
        self,
        stock: Any,
        number: int,
        name: Key,
        value: mx.nd.NDArray,
        servers: Servers,
        call: Callable[[Callable[[], Any], str], Any],
    ) -> None:
        self._stock = stock
        self.number = number
        self._name = name
        self._value_stype = value.stype
        self.shape: Tuple[int, ...] = value.shape
        self._dtype = value.dtype
        self._servers = servers
        self._rows = mx.nd.arange(value.shape[0], dtype="int64")
        everything = with_all_rows(value.tostype("default").as_in_context(mx.cpu()))
        call(lambda: KVStore.init(stock, number, everything), f"initialised key {name!r}")
        self._pulled = everything

    def placement(self) -> List[Tuple[int, int, Tuple[int, ...]]]:
        """Which server has which rows, as MXNet deals them: (server, first row, shape there)."""
        rows = self.shape[0]
        row = (math.prod(self.shape[1:]),) if self._servers.flat else self.shape[1:]
        if math.prod(self.shape) < self._servers.big_array:
            return [((self.number * 9973) % self._servers.count, 0, (rows, *row))]
        share = rows / self._servers.count
        ends = [int(share * (i + 1) + 0.5) for i in range(self._servers.count)]
        begins = [0, *ends[:-1]]
        return [
            (server, begin, (end - begin, *row))
            for server, (begin, end) in enumerate(zip(begins, ends))
            if end > begin
        ]

    def push(self, arrays: List[mx.nd.NDArray], priority: int) -> None:
        """Sends row-sparse gradients, summed over devices."""
        KVStore.push(self._stock, self.number, arrays, priority)

    def pull(self, outs: List[mx.nd.NDArray], priority: int) -> None:
        """Writes the value into dense arrays; row-sparse ones are left alone, as MXNet does."""
        if self._value_stype != "default":
            return
        self.pull_rows(self._pulled, self._rows, priority)
        value = mx.nd.cast_storage(self._pulled, stype="default")
        for out in outs:
            value.copyto(out)

    def pull_rows(self, out: Any, rows: Any, priority: int) -> None:
        """Writes the value's rows into a row-sparse array, or one a device."""
        KVStore.row_sparse_pull(self._stock, self.number, out, priority, rows)

    def check_pushed(self, arrays: List[mx.nd.NDArray]) -> None:
        """Raises ArrayMismatch for gradients that are not row-sparse and of the key's shape."""
        for array in arrays:
            self._check(array, "row_sparse")

    def check_pulled(self, arrays: List[mx.nd.NDArray]) -> None:
        """Raises ArrayMismatch for arrays that cannot take the key's value."""
        if self._value_stype == "default":
            for array in arrays:
                self._check(array, "default")

    def _check(self, array: mx.nd.NDArray, stype: str) -> None:
        found = (array.stype, array.shape, array.dtype)
        if found != (stype, self.shape, self._dtype):
            raise ArrayMismatch(
                f"key {self._name!r}: got a {storage(array.stype)} array of shape {array.shape}, "
                f"{np.dtype(array.dtype).name}; it must be {storage(stype)} of shape "
                f"{self.shape}, {np.dtype(self._dtype).name}"
            )


class NativeUpdater:
    """What MXNet's server calls with a sparse key's number: the updater of the key's store."""

    def __init__(self, abort: Callable[[str], None]) -> None:
        self._abort = abort  # what is raised here gets lost on its way through MXNet
        self._updaters: Dict[int, mx.optimizer.Updater] = {}
        self._masters: Dict[int, Any] = {}  # weights of float16 keys in float32, by number
        self._settings: Dict[int, SettingsFollower] = {}

    def set_optimizer(
        self,
        store: int,
        optimizer: mx.optimizer.Optimizer,
        factors: Multipliers,
    ) -> None:
        """Updates a store's sparse keys with this optimizer, from its first step."""
        self._updaters[store] = mx.optimizer.get_updater(optimizer)
        self._masters.clear()
        self._settings[store] = SettingsFollower(optimizer, factors)

    def state(self, number: int) -> Tuple[Any, int]:
        """A key's state and how often it was updated; raises KeyError before its first update."""
        store, index = _store_and_key(number)
        updater = self._updaters[store]
        return updater.states[index], updater.optimizer._index_update_count[index]

    def set_state(self, number: int, state: Any, count: int) -> None:
        """Goes on from a state that `state` returned, here or elsewhere."""
        store, index = _store_and_key(number)
        updater = self._updaters[store]
        updater.states[index], updater.states_synced[index] = state, True
        updater.optimizer._index_update_count[index] = count

    def apply(self, number: int, settings: str) -> None:
        """Takes over what a script has changed of the optimizer, before a key's next update."""
        store, index = _store_and_key(number)
        self._settings[store].apply(settings, index)

    def __call__(self, number: int, gradient: Any, value: Any) -> None:
        try:
            self._update(number, gradient, value)
        except Exception as error:
            self._abort(
                f"the optimizer failed on sparse key {_store_and_key(number)[1]}: "
                f"{type(error).__name__}: {error}"
            )

    def _update(self, number: int, gradient: Any, value: Any) -> None:
        store, index = _store_and_key(number)
        if store not in self._updaters:
            gradient.copyto(value)
        elif value.dtype != np.float16 or not self._updaters[store].optimizer.multi_precision:
            self._updaters[store](index, gradient, value)
        else:
            # MXNet's servers keep weights in float32 by themselves, its local store does not.
            if number not in self._masters:
                self._masters[number] = value.astype(np.float32)
            master = self._masters[number]
            self._updaters[store](index, gradient.astype(np.float32), master)
            master.astype(np.float16).copyto(value)
