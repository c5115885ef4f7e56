"""How MXNet's servers update sparse keys, which travel through its own store."""
from __future__ import annotations

from typing import Any, Callable, Dict, Set, Tuple

import mxnet as mx
import numpy as np

from ..keys.names import stype_of
from ..keys.sparse_rows import store_and_key
from ..protocol.state_format import with_all_rows
from .settings import Multipliers, SettingsFollower

# These change row-sparse weights where they lie.
_IN_PLACE = (mx.optimizer.SGD, mx.optimizer.Adam, mx.optimizer.AdaGrad, mx.optimizer.Ftrl)


class NativeUpdater:
    """What MXNet's server calls with a sparse key's number: the updater of the key's store.

    All is called by one thread, MXNet's server's, but for `state`, `set_state` and `assign`, which
    are the question desk's: a worker asks for states once its pushes have ended, and puts them back
    before anybody pushes again.
    """

    def __init__(self, abort: Callable[[str], None]) -> None:
        self._abort = abort  # what is raised here gets lost on its way through MXNet
        self._updaters: Dict[int, mx.optimizer.Updater] = {}
        self._masters: Dict[int, Any] = {}  # weights of float16 keys in float32, by number
        self._settings: Dict[int, SettingsFollower] = {}
        self._heard: Dict[int, str] = {}  # the last settings that came for a key, by number
        self._assigned: Set[int] = set()  # numbers whose next update is a value

    def set_optimizer(
        self,
        store: int,
        optimizer: mx.optimizer.Optimizer,
        factors: Multipliers,
    ) -> None:
        """Updates a store's sparse keys with this optimizer, from its first step."""
        self._updaters[store] = mx.optimizer.get_updater(optimizer)
        for kept in (self._masters, self._heard):
            for number in [own for own in kept if store_and_key(own)[0] == store]:
                del kept[number]
        self._settings[store] = SettingsFollower(optimizer, factors)

    def state(self, place: Tuple[int, ...]) -> Tuple[Any, int]:
        """A key's state and how often it was updated; raises KeyError before its first update. Its
        place is (number,)."""
        store, index = store_and_key(*place)
        updater = self._updaters[store]
        return updater.states[index], int(updater.optimizer._index_update_count[index])

    def set_state(self, place: Tuple[int, ...], state: Any, count: int) -> None:
        """Goes on from a state that `state` returned, here or elsewhere."""
        store, index = store_and_key(*place)
        updater = self._updaters[store]
        updater.states[index], updater.states_synced[index] = state, True
        updater.optimizer._index_update_count[index] = count

    def assign(self, place: Tuple[int, ...]) -> None:
        """Takes the sum of the key's next pushes for its value, and makes no update of it."""
        self._assigned.add(place[0])

    def apply(self, number: int, settings: str) -> None:
        """Has a key's updates, from the next one on, be by what a script has changed of the
        optimizer. Other keys of the store keep what came for them."""
        self._heard[number] = settings

    def __call__(self, number: int, gradient: Any, value: Any) -> None:
        try:
            self._update(number, gradient, value)
        except (Exception, SystemExit) as error:  # MXNet would drop a SystemExit
            self._abort(
                f"the optimizer failed on sparse key {store_and_key(number)[1]}: "
                f"{type(error).__name__}: {error}"
            )

    def _update(self, number: int, gradient: Any, value: Any) -> None:
        store, index = store_and_key(number)
        if number in self._assigned or store not in self._updaters:
            self._assigned.discard(number)
            gradient.copyto(value)
            return
        # In a process alone nothing is heard where the optimizer is the script's own.
        if self._heard:
            self._settings[store].apply(self._heard.get(number, ""), index)
        if value.dtype != np.float16 or not self._updaters[store].optimizer.multi_precision:
            self._updaters[store](index, gradient, value)
        else:
            # MXNet's servers keep weights in float32 by themselves, its local store does not.
            if number not in self._masters:
                self._masters[number] = value.astype(np.float32)
            master = self._masters[number]
            self._updaters[store](index, gradient.astype(np.float32), master)
            master.astype(np.float16).copyto(value)
        if type(self._updaters[store].optimizer) not in _IN_PLACE:
            _put_back_rows(value)


def _put_back_rows(value: mx.nd.NDArray) -> None:
    """MXNet writes what other optimizers compute without its rows of zeros. Its servers would then
    take one row for another: they look for a row where it lies if there are all."""
    if stype_of(value) == "row_sparse":
        with_all_rows(value.tostype("default")).copyto(value)
