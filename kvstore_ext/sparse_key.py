"""Keys with row-sparse weights or gradients: they travel through MXNet's own store, by number."""
from __future__ import annotations

import math
from typing import Any, Callable, List, Tuple

import mxnet as mx
import numpy as np
from mxnet.kvstore import KVStore

from .errors import ArrayMismatch
from .keys import Key, storage
from .server_part import ServerPart
from .sparse_rows import Servers, with_all_rows


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

    def parts(self) -> List[ServerPart]:
        """Which server has which rows."""
        width = math.prod(self.shape[1:])
        return [
            ServerPart(server, "rows", (self.number,), row * width, shape)
            for server, row, shape in self._servers.deal(self.number, self.shape)
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
