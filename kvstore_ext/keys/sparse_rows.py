"""Keys with row-sparse arrays in MXNet's own store: their numbers, and who has which rows."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import List, Tuple

from ..errors import KVStoreError
from .names import Key

# MXNet's store has one space of numbers for all stores of a process; each gets a part of it. From
# 215,325 on, MXNet picks servers that do not exist (it multiplies by 9973, in an int).
_FIRST_STORES = 100_000
_OTHER_STORES = 1024
_LIMIT = 215_000

# Bytes of a key's rows on a server: ps-lite counts those of a message in an int. Of a longer one
# MXNet's server gets nothing, and aborts at the first pull.
MOST_BYTES = 2**31 - 1


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
        which = f"is {own}" if own == name else f"has position {own}, as {name!r} does"
        raise KVStoreError(
            f"a key with sparse arrays {which}, in store {store} of this process; it must be 0 to "
            f"{most - 1}, in one of the first {(_LIMIT - _FIRST_STORES) // _OTHER_STORES} stores"
        )
    return begin + own


def store_and_key(number: int) -> Tuple[int, int]:
    """The store that a number belongs to, and the key's own number in it."""
    if number < _FIRST_STORES:
        return 0, number
    store, own = divmod(number - _FIRST_STORES, _OTHER_STORES)
    return store + 1, own


@dataclass(frozen=True)
class Servers:
    """MXNet's servers: arrays with as many elements as `big_array` are dealt to all of them.

    `flat`: they keep rows as vectors, whatever the shape; `most_bytes`: what each can have of a
    key's rows.
    """

    count: int
    big_array: int
    flat: bool
    most_bytes: int

    def deal(
        self, number: int, shape: Tuple[int, ...]
    ) -> List[Tuple[int, int, Tuple[int, ...]]]:
        """Which server has which rows of a key: (server, first row, shape there)."""
        rows = shape[0]
        row = (math.prod(shape[1:]),) if self.flat else shape[1:]
        if math.prod(shape) < self.big_array:
            return [((number * 9973) % self.count, 0, (rows, *row))]
        share = rows / self.count
        ends = [int(share * (i + 1) + 0.5) for i in range(self.count)]
        begins = [0, *ends[:-1]]
        return [
            (server, begin, (end - begin, *row))
            for server, (begin, end) in enumerate(zip(begins, ends))
            if end > begin
        ]
