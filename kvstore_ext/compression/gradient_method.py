"""A store that compresses gradients: which, when, and whose momentum it applies."""
from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional

import mxnet as mx
import numpy as np

from .. import _core
from ..errors import ArrayMismatch, KVStoreError
from ..keys.key_arrays import KeyArrays
from ..keys.names import Key, storage, stype_of
from .store_context import StoreContext
from .store_method import StoreMethod

if TYPE_CHECKING:
    from . import Compression


class GradientMethod(StoreMethod):
    """Compresses the gradients of the keys that are not excluded."""

    def __init__(self, context: StoreContext, compression: Compression) -> None:
        super().__init__(context, compression)
        self._options = compression
        self._last: List[Key] = []  # of exclude_last
        self._known_at = -1

    def compression_of(self, name: Key) -> Optional[Compression]:
        # The momentum of excluded keys is the lane's matter, too.
        if self._options.applies_momentum:
            return self._options
        return super().compression_of(name)

    def check(self, name: Key, array: mx.nd.NDArray) -> None:
        stype = stype_of(array)
        if stype != "default" and self._options.applies_momentum and self._momentum:
            # Nobody would apply the momentum.
            raise ArrayMismatch(
                f"key {name!r}: got a {storage(stype)} array; with compression "
                f"{self._options.name} and a momentum it must be dense"
            )
        super().check(name, array)

    @property
    def _momentum(self) -> float:
        return self._context.adopted.momentum

    def codec(self, compression: Compression, key: KeyArrays) -> _core.GradientCodec:
        specification = compression.specification(key.shape)
        raises = compression.non_finite_ends_job
        return _core.GradientCodec(specification, self._context.workers, raises)

    def declare(self, key: KeyArrays) -> None:
        super().declare(key)
        if key.compressed:
            self.codecs[key.name].set_momentum(self._momentum)

    def adopt(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Takes the optimizer's momentum over where the method applies it: the optimizer's own is 0
        from now on. Raises KVStoreError for a momentum that is not plain SGD's."""
        super().adopt(optimizer)
        momentum = getattr(optimizer, "momentum", 0.0)
        if not self._options.applies_momentum or not momentum:
            return
        if type(optimizer) is not mx.optimizer.SGD:
            raise KVStoreError(
                f"{self._options.name} applies the momentum of SGD itself; that of "
                f"{type(optimizer).__name__} is another: use SGD, or an optimizer without momentum"
            )
        self._context.adopted.momentum = momentum
        optimizer.momentum = 0.0
        for key in self._keys():
            self.codecs[key.name].set_momentum(momentum)

    def plain(self, name: Key, step: int) -> bool:
        """Whether it is excluded, or with exclude_last the last one, once that is known."""
        if self.excludes(name):
            return True
        if not self._options.exclude_last:
            return False
        if step != self._known_at:
            self._known_at = step
            self._last = self._last_layer()
        return name in self._last

    def of_worker(self, name: Key) -> np.ndarray:
        """What this worker carries over for a compressed key, float32: nothing before the first
        round, and with dgc the accumulated gradient, then its momentum."""
        mx.nd.waitall()  # no round is under way then
        return np.asarray(self.codecs[name].state())

    def _last_layer(self) -> List[Key]:
        """The weight that is needed last, and what is as long as its first dimension beside it: a
        layer's bias is learned right before or after its weight."""
        keys = self._context.keys
        names = {key.identity: name for name, key in keys.items()}
        order = [names[key] for key in self._context.worker.order() if key in names]
        matrices = [at for at, name in enumerate(order) if len(keys[name].shape) > 1]
        if not matrices:
            return order[-1:]
        weight = matrices[-1]
        bias = keys[order[weight]].shape[:1]
        near = order[max(0, weight - 1) : weight] + order[weight + 1 :]
        return [order[weight], *[name for name in near if keys[name].shape == bias]]
