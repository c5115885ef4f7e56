"""What becomes of a store's key: who updates it, and how it travels."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, List, Optional, Tuple

import mxnet as mx

from ..errors import KVStoreError
from .key_arrays import KeyArrays
from .key_parts import KeyPart
from .names import Key

Values = List[mx.nd.NDArray]  # of one key, one a device


class KeyPolicy(ABC):
    """The policy of one key. Its calls return at once, except where MXNet's own store waits.

    Parameters
    ----------
    name
        What the script calls the key.
    shape, dtype
        Its value's.
    """

    def __init__(self, name: Key, shape: Tuple[int, ...], dtype: Any) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype

    @abstractmethod
    def check_push(self, values: Values, outs: Optional[Values]) -> None:
        """Raises ArrayMismatch or KVStoreError for gradients that it cannot take, where the same
        call pulls into `outs`; None for a push alone, or into the gradients."""

    @abstractmethod
    def check_pull(self, outs: Values) -> None:
        """Raises ArrayMismatch for arrays that cannot take the key's value."""

    @abstractmethod
    def begin(self, value: mx.nd.NDArray, outs: Optional[Values], priority: int) -> None:
        """Gives the key its first value, rank 0's, and writes it into outs."""

    @abstractmethod
    def resume(self, value: mx.nd.NDArray) -> None:
        """Goes on with the value, on the CPU, that the key has under another policy; in place of
        `begin`."""

    @abstractmethod
    def push(self, values: Values, priority: int) -> None:
        """Sends gradients."""

    @abstractmethod
    def pull(self, outs: Values, priority: int) -> None:
        """Writes the value as of the last push into outs."""

    def pushpull(self, values: Values, outs: Values, priority: int) -> None:
        """`push`, then `pull`."""
        self.push(values, priority)
        self.pull(outs, priority)

    @abstractmethod
    def pull_rows(self, out: Any, rows: Any, priority: int) -> None:
        """Writes rows of the value into a row-sparse array, or one a device; raises KVStoreError
        for a key that has none."""

    @abstractmethod
    def parts(self) -> List[KeyPart]:
        """The parts in which the servers have it."""


class DensePolicy(KeyPolicy):
    """The policy of a key that travels on the lane."""

    def __init__(self, key: KeyArrays) -> None:
        super().__init__(key.name, key.shape, key.dtype)
        self.key = key

    def check_push(self, values: Values, outs: Optional[Values]) -> None:
        self.key.check_pushed(values)

    def check_pull(self, outs: Values) -> None:
        self.key.check_pulled(outs)

    def begin(self, value: mx.nd.NDArray, outs: Optional[Values], priority: int) -> None:
        self.key.init(value, outs, priority)

    def resume(self, value: mx.nd.NDArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} takes no key over")

    def pull(self, outs: Values, priority: int) -> None:
        self.key.pull(outs, priority)

    def pull_rows(self, out: Any, rows: Any, priority: int) -> None:
        raise KVStoreError(f"key {self.name!r} is dense, with dense gradients: use pull")

    def parts(self) -> List[KeyPart]:
        return self.key.parts()
