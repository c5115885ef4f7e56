"""A store that compresses gradients: which, when, and whose momentum it applies."""
from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional

import mxnet as mx
import numpy as np

from .. import _core
from ..errors import ArrayMismatch
from ..keys.key_arrays import KeyArrays
from ..keys.names import Key, storage, stype_of
from ..notes import warn_script
from .last_layer import last_declared
from .momentum import check_momentum, take_momentum
from .store_context import StoreContext
from .store_method import StoreMethod

if TYPE_CHECKING:
    from . import Compression


class GradientMethod(StoreMethod):
    """Compresses the gradients of the keys that are not excluded."""

    def __init__(self, context: StoreContext, compression: Compression) -> None:
        super().__init__(context, compression)
        self._options = compression
        self._last: Optional[List[Key]] = None  # of exclude_last, until it is asked for
        self._warned = False

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

    @property
    def non_finite_of_plain(self) -> _core.NonFinite:
        """As of those that are compressed."""
        raises = self._options.non_finite_ends_job
        return _core.NonFinite.RAISE if raises else _core.NonFinite.SKIP

    def declare(self, key: KeyArrays) -> None:
        super().declare(key)
        self._last = None
        if key.compressed:
            self.codecs[key.name].set_momentum(self._momentum)

    def check_optimizer(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Raises KVStoreError for one whose momentum the method applies and cannot take."""
        super().check_optimizer(optimizer)
        if self._options.applies_momentum:
            check_momentum(optimizer, self._options.name)

    def adopt(self, optimizer: mx.optimizer.Optimizer) -> None:
        """Takes the optimizer's momentum over where the method applies it; raises KVStoreError for
        one that it cannot take (momentum.py)."""
        super().adopt(optimizer)
        self._last = None
        if not self._options.applies_momentum:
            return
        self._context.adopted.momentum = take_momentum(optimizer, self._options.name)
        for key in self._keys():
            self.codecs[key.name].set_momentum(self._momentum)

    def excludes(self, name: Key) -> bool:
        return super().excludes(name) or (self._options.exclude_last and self._is_last(name))

    def plain(self, name: Key) -> bool:
        """Whether it is excluded, or with exclude_last the last layer's; warns where no key is.

        More than `excludes`, by which a key is declared: which keys were declared last is known
        once all are. They have codecs then, so that each of their pushes is to travel plain.
        """
        if self._options.exclude_last and self._last is None:
            self._last = self._find_last_layer()
            if not self._last and not self._warned:
                self._warned = True
                warn_script(self._no_last_layer())
        return self.excludes(name) or name in (self._last or ())

    def excluded(self) -> List[Key]:
        last = self._find_last_layer() if self._options.exclude_last else []
        return [name for name in self._context.keys if self.excludes(name) or name in last]

    def learn_last_layer(self, keys: List[Key]) -> None:
        super().learn_last_layer(keys)
        self._last = None

    def of_worker(self, name: Key) -> np.ndarray:
        """What this worker carries over for a compressed key, float32: nothing before the first
        round, and with dgc the accumulated gradient, then its momentum."""
        self._context.wait_for_all()  # no round is under way then
        return np.asarray(self.codecs[name].state())

    def _is_last(self, name: Key) -> bool:
        """Whether a key is the last layer's, as the script says; or else Trainer and Module, who
        know the network."""
        adopted = self._context.adopted
        if self._options.last_layer:
            return self._options.is_last(name, adopted.names.get(name))
        return name in (adopted.last_layer or ())

    def _find_last_layer(self) -> List[Key]:
        """All of these keys; or, where a script has told its optimizer without a network, those
        that were declared last. Nothing where neither is known."""
        keys, adopted = self._context.keys, self._context.adopted
        if self._options.last_layer or adopted.last_layer is not None:
            return [name for name in keys if self._is_last(name)]
        if not adopted.any:
            return []
        return last_declared(
            {name: key.shape for name, key in keys.items() if name not in adopted.untrained}
        )

    def _no_last_layer(self) -> str:
        options = self._options
        named = list(options.last_layer)
        if named:
            return f"{options.name}: last_layer is {named}; no key of the store is so named"
        return (
            f"{options.name}: exclude_last does nothing, since nobody has told which layer is the "
            "last: name its keys in the option last_layer, or call adopt_optimizer"
        )
