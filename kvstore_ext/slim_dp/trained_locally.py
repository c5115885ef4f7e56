"""A key that each worker trains by itself, with Slim-DP."""
from __future__ import annotations

from typing import Callable, Optional

import mxnet as mx

from ..keys.key_arrays import KeyArrays, PushDetails
from ..keys.key_policy import DensePolicy, Values
from ..keys.names import Key, same_memory
from .local_training import LocalTraining


class TrainedLocally(DensePolicy):
    """The script's parameters are the worker's own; the servers have the global ones.

    Parameters
    ----------
    training
        The store's.
    details
        Counts a push of a key with this priority, and tells what accompanies it, if it travels.
    begin_anew
        Takes what the script's parameters are for what they were at the end of the last round, so
        that the next update counts from there.
    """

    def __init__(
        self,
        key: KeyArrays,
        training: LocalTraining,
        details: Callable[[Key, int, bool], PushDetails],
        begin_anew: Callable[[Key], None],
    ) -> None:
        super().__init__(key)
        self._training = training
        self._details = details
        self._begin_anew = begin_anew

    def check_push(self, values: Values, outs: Optional[Values]) -> None:
        super().check_push(values, outs)
        self._training.check_step(self.name, values, outs)

    def begin(self, value: mx.nd.NDArray, outs: Optional[Values], priority: int) -> None:
        if outs:
            self._training.arrays[self.name] = outs
        super().begin(value, outs, priority)

    def pull(self, outs: Values, priority: int) -> None:
        trained = self._training.arrays.setdefault(self.name, outs)
        super().pull(outs, priority)
        if not self._training.has_own_model(self.name):
            return
        if any(same_memory(out, trained[0]) for out in outs):
            self._begin_anew(self.name)  # the local model has become the global one

    def push(self, values: Values, priority: int) -> None:
        raise NotImplementedError("check_push refuses gradients without parameters")

    def pushpull(self, values: Values, outs: Values, priority: int) -> None:
        """Updates the parameters, which are the outs, and exchanges them where a round is due."""
        details = self._details(self.name, priority, self._training.communicates(self.name))
        self._training.step(self.name, values, outs, details)
