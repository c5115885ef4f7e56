"""Which keys of a store are compressed, and when: what the compression leaves to the moment."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Set

import mxnet as mx
import numpy as np

from . import _core
from .arrays import KeyArrays
from .compression import Compression, GradientCompression
from .compression.dgc import DGC
from .compression.two_bit import TwoBit
from .errors import ArrayMismatch, KVStoreError
from .keys import Key, storage
from .slim_options import SlimDP


class CompressedKeys:
    """A store's compression; None as `method` until it is set."""

    def __init__(self, worker: _core.Worker, keys: Mapping[Key, KeyArrays]) -> None:
        self.method: Optional[Compression] = None
        self._worker = worker
        self._keys = keys
        self._names: Dict[Key, str] = {}
        self._untrained: Set[Key] = set()  # as far as an optimizer tells
        self._momentum = 0.0
        self._last: List[Key] = []  # of exclude_last
        self._known_at = -1

    def check(self, name: Key, array: mx.nd.NDArray) -> None:
        """Raises ArrayMismatch for an array that the method cannot compress.

        Row-sparse ones travel uncompressed, but with 2bit MXNet refuses them, and with dgc nobody
        would apply the momentum.
        """
        method = self.of(name)
        if method is None:
            return
        if array.stype != "default" and isinstance(method, DGC) and self._momentum:
            raise ArrayMismatch(
                f"key {name!r}: got a {storage(array.stype)} array; with compression dgc and a "
                "momentum it must be dense"
            )
        if array.stype != "default" and not isinstance(method, TwoBit):
            return
        alone = isinstance(method, (TwoBit, SlimDP))
        types: List[Any] = [np.float32] if alone else [np.float32, np.float16]
        if array.stype != "default" or array.dtype not in types:
            raise ArrayMismatch(
                f"key {name!r}: got a {storage(array.stype)} array of "
                f"{np.dtype(array.dtype).name}; with compression {method.name} it must be dense, "
                f"of {' or '.join(np.dtype(kind).name for kind in types)}"
            )

    def of(self, name: Key) -> Optional[Compression]:
        """The method for a key; None where it is excluded."""
        # With dgc the momentum of excluded keys is the lane's matter, too.
        if isinstance(self.method, DGC) or self.method is None or not self._excluded(name):
            return self.method
        return None

    def _excluded(self, name: Key) -> bool:
        if isinstance(self.method, SlimDP) and name in self._untrained:
            return True  # it has no update, and no place in the core
        return self.method is not None and self.method.excludes(name, self._names.get(name))

    def declared(self, key: KeyArrays) -> None:
        """To be called once a key is known to the lane."""
        if key.compressed and isinstance(self.method, GradientCompression):
            key.codec.set_momentum(self._momentum)

    def adopt(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Learns the parameters' names, and takes the optimizer's momentum over where the method
        applies it: the optimizer's own is 0 from now on.

        Raises
        ------
        KVStoreError
            For a momentum that is not plain SGD's.
        """
        self._names.update(optimizer.idx2name)
        for index, parameter in optimizer.param_dict.items():
            self._names[index] = parameter.name
            if parameter.grad_req == "null":
                self._untrained.add(index)
        momentum = getattr(optimizer, "momentum", 0.0)
        if not isinstance(self.method, DGC) or not momentum:
            return
        if type(optimizer) is not mx.optimizer.SGD:
            raise KVStoreError(
                f"dgc applies the momentum of SGD itself; that of {type(optimizer).__name__} is "
                "another: use SGD, or an optimizer without momentum"
            )
        self._momentum = momentum
        optimizer.momentum = 0.0
        for key in self._keys.values():
            self.declared(key)

    def plain(self, name: Key, step: int) -> bool:
        """Whether a key travels uncompressed in this step: excluded, or with exclude_last the last
        one, once that is known."""
        if self._excluded(name):
            return True
        if not isinstance(self.method, GradientCompression) or not self.method.exclude_last:
            return False
        if step != self._known_at:
            self._known_at = step
            self._last = self._last_layer()
        return name in self._last

    def _last_layer(self) -> List[Key]:
        """The weight that is needed last, and what is as long as its first dimension beside it: a
        layer's bias is learned right before or after its weight."""
        names = {key.identity: name for name, key in self._keys.items()}
        order = [names[identity] for identity in self._worker.order() if identity in names]
        matrices = [at for at, name in enumerate(order) if len(self._keys[name].shape) > 1]
        if not matrices:
            return order[-1:]
        weight = matrices[-1]
        bias = self._keys[order[weight]].shape[:1]
        near = order[max(0, weight - 1) : weight] + order[weight + 1 :]
        return [order[weight], *[name for name in near if self._keys[name].shape == bias]]
