"""Arrays that one worker gives to all others, through the servers (store.broadcast_from)."""
from __future__ import annotations

from typing import Dict

import mxnet as mx

from .. import _core
from ..errors import ArrayMismatch, KVStoreError
from ..keys.key_arrays import KeyArrays
from ..keys.names import Key, Pairs, identity
from ..lane.lane import Lane


class Broadcasts:
    """A store's keys for arrays that travel whole: no sum, no optimizer, no compression.

    Each is a round of the lane like any other, so that it is sliced, ordered by priority, bounded
    in memory (a server keeps the last array's slices) and given up with the names of the missing.
    """

    def __init__(self, lane: Lane, store: int) -> None:
        self._lane, self._store = lane, store
        self._keys: Dict[Key, KeyArrays] = {}

    def begin(self, root: int, values: Pairs, priority: int) -> None:
        """Overwrites the arrays by the root's, once they are computed; see store.broadcast_from."""
        if not 0 <= root < self._lane.workers:
            raise KVStoreError(f"root is {root}; it must be a rank, 0 to {self._lane.workers - 1}")
        for name, arrays in values:
            if len(arrays) != 1:
                raise ArrayMismatch(f"key {name!r}: got {len(arrays)} arrays; it must be one")
            self._check(name, arrays[0])
        if self._lane.workers == 1:
            return
        is_root = root == self._lane.rank
        for name, arrays in values:
            self._keys[name].broadcast(root, is_root, arrays[0], priority)

    def _check(self, name: Key, array: mx.nd.NDArray) -> None:
        """Raises ArrayMismatch for an array that is not as the key; the first that is none of these
        says how the key is."""
        if name in self._keys:
            return self._keys[name].check(array, "default")
        number = identity(self._store, f"broadcast {name!r}")
        key = KeyArrays(self._lane.worker, name, number, array)
        key.check(array, "default")
        key.declare(self._store, _core.PlainCodec("broadcast"))
        self._keys[name] = key
        return None
