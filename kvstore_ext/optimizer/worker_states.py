"""What MXNet calls a store's updater, for optimizers that run on the workers."""
from __future__ import annotations

import pickle
from typing import Any, Dict, Mapping, Tuple

import mxnet as mx

from ..copies import copied, count_on, packed, update_counts
from ..keys.key_arrays import KeyArrays
from ..keys.names import Key
from ..protocol.carries import Carries
from .server_states import check_states, load_states
from .settings import with_names


class CarryingUpdater(mx.optimizer.Updater):
    """A worker's own updater, whose saved states have what compression carries over as well."""

    def __init__(self, optimizer: mx.optimizer.Optimizer, carries: Carries) -> None:
        super().__init__(optimizer)
        self._carries = carries
        self._taken_over: Dict[Any, int] = {}  # counts of updates, for devices to come

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """As MXNet's."""
        weights = weight if isinstance(index, (list, tuple)) else [weight]
        if self._taken_over and weights:
            tables = self.optimizer._all_index_update_counts
            tables.setdefault(weights[0].context.device_id, dict(self._taken_over))
        super().__call__(index, grad, weight)

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """As MXNet's, but that who loads them needs no GPU of the same number."""
        states = {**self.collect(), **self._carries.fetch()}
        return packed(self.optimizer, states) if dump_optimizer else pickle.dumps(states)

    def collect(self) -> Dict[Any, Any]:
        """The states alone, of which nothing changes any more."""
        return {name: copied(state) for name, state in self.states.items()}

    def saved(self) -> Tuple[Dict[Any, Any], bytes]:
        """These, and the optimizer."""
        return self.collect(), packed(self.optimizer)

    def resume(self, states: Dict[Any, Any]) -> None:
        """Goes on from states, and from where the optimizer is."""
        self._carries.adopt(self.optimizer)
        self.states = dict(states)
        self.states_synced = dict.fromkeys(states, False)
        self._take_counts_over()

    def set_states(self, states: bytes) -> None:
        """As MXNet's; raises KVStoreError for what is no states, what another compression has
        carried over, or an optimizer that the method refuses, before anything is changed."""
        loaded, optimizer = load_states(states)
        self._check(loaded)
        if optimizer is not None:
            self._carries.check_optimizer(optimizer)
        self._carries.put_back(loaded)
        super().set_states(pickle.dumps(loaded if optimizer is None else (loaded, optimizer)))
        self._carries.adopt(self.optimizer)
        self._take_counts_over()

    def _take_counts_over(self) -> None:
        """Has devices count on that have other numbers where the optimizer comes from."""
        self._taken_over = update_counts(self.optimizer)
        count_on(self.optimizer, self._taken_over)

    def _check(self, states: Dict[Any, Any]) -> None:
        """Raises KVStoreError for states of other parameters; here these are not known."""


class WorkerStates(CarryingUpdater):
    """What MXNet calls a store's updater, for an optimizer that runs on the workers."""

    def __init__(
        self,
        optimizer: mx.optimizer.Optimizer,
        keys: Mapping[Key, KeyArrays],
        carries: Carries,
    ) -> None:
        super().__init__(optimizer, carries)
        self._keys = keys

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """As MXNet's, by the multipliers that the servers would have."""
        optimizer = self.optimizer
        own = optimizer.lr_mult, optimizer.wd_mult
        optimizer.lr_mult = with_names(optimizer, "lr_mult")
        optimizer.wd_mult = with_names(optimizer, "wd_mult")
        try:
            super().__call__(index, grad, weight)
        finally:
            optimizer.lr_mult, optimizer.wd_mult = own

    def _check(self, states: Dict[Any, Any]) -> None:
        check_states(states, self._keys, whole=True)
