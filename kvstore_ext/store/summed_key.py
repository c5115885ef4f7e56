"""Dense keys whose gradients the servers add up: updated there, or on every worker."""
from __future__ import annotations

from typing import Any, Callable, Optional

import mxnet as mx

from ..compression.store_method import StoreMethod
from ..keys.key_arrays import KeyArrays, PushDetails
from ..keys.key_policy import DensePolicy, Values
from ..keys.names import Key
from .pushes import Pushes

# Called as updater(name, gradient, value): MXNet's for an optimizer, or a user's function.
Updater = Callable[[Key, mx.nd.NDArray, mx.nd.NDArray], Any]


class SummedKey(DensePolicy):
    """What the two policies below have in common.

    Parameters
    ----------
    pushes, method
        The store's.
    """

    def __init__(self, key: KeyArrays, pushes: Pushes, method: StoreMethod) -> None:
        super().__init__(key)
        self._pushes = pushes
        self._method = method

    def _details(self, priority: int) -> PushDetails:
        details = self._pushes.details(self.name, priority)
        return details._replace(plain=True) if self._method.plain(self.name) else details


class UpdatedOnServers(SummedKey):
    """The servers update it slice by slice; without an optimizer its value is the last sum."""

    def push(self, values: Values, priority: int) -> None:
        self.key.push(values, self._details(priority))

    def pushpull(self, values: Values, outs: Values, priority: int) -> None:
        self.key.pushpull(values, outs, self._details(priority))


class WorkerUpdater:
    """What updates a store's parameters on the workers; another one may take its place."""

    def __init__(self, function: Updater) -> None:
        self.function = function


class UpdatedOnWorkers(SummedKey):
    """Every worker updates it whole, from the sum of all workers' gradients.

    All do the same, so they keep the same parameters; each keeps a copy of them and of the sums.
    The servers see to it that all have the same settings (optimizer/settings.py).
    """

    def __init__(
        self, key: KeyArrays, pushes: Pushes, method: StoreMethod, updater: WorkerUpdater
    ) -> None:
        super().__init__(key, pushes, method)
        self._updater = updater
        self._value: Any = None  # until `begin` or `resume`
        self._sum: Any = None  # until the first push

    def begin(self, value: mx.nd.NDArray, outs: Optional[Values], priority: int) -> None:
        self._value = mx.nd.empty(value.shape, value.context, value.dtype)
        self.key.init(value, [self._value], priority)
        self.pull(outs or [], priority)

    def resume(self, value: mx.nd.NDArray) -> None:
        self._value = value

    def overwrite(self, value: mx.nd.NDArray) -> None:
        """Goes on from another value, which all workers have alike."""
        value.copyto(self._value)

    @property
    def value(self) -> mx.nd.NDArray:
        """The worker's copy of it."""
        return self._value

    def push(self, values: Values, priority: int) -> None:
        if self._sum is None:
            # Where gradients are computed: Module's first values are on the CPU.
            self._value = self._value.as_in_context(values[0].context)
            self._sum = mx.nd.zeros_like(self._value)
        self.key.pushpull(values, [self._sum], self._details(priority))
        if self._method.gradient_divisor > 1:
            self._sum /= self._method.gradient_divisor
        self._updater.function(self.name, self._sum, self._value)

    def pull(self, outs: Values, priority: int) -> None:
        for out in outs:
            self._value.copyto(out)
