"""MXNet's optimizers on the servers, where a parameter is a number of slices."""
from __future__ import annotations

import ast
import copy
import threading
from itertools import groupby
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import mxnet as mx
import numpy as np

from .. import _core
from ..keys.key_arrays import DTYPES
from .settings import Multipliers, SettingsFollower

# A slice of a parameter: its key's identity, and its number.
Place = Tuple[int, int]

# Updates that are taken from the core together. More would keep those waiting that are more urgent
# and come meanwhile.
_MOST_AT_ONCE = 16

# Updating more elements takes longer than calling MXNet.
_FEW_ELEMENTS = 4096


def without_schedule(optimizer: mx.optimizer.Optimizer) -> mx.optimizer.Optimizer:
    """A shallow copy, with the learning rate that the schedule has come to."""
    bare = copy.copy(optimizer)
    if bare.lr_scheduler is not None:
        bare.lr = bare.lr_scheduler(bare.num_update)
        bare.lr_scheduler = None
    return bare


def copy_optimizer(optimizer: mx.optimizer.Optimizer) -> mx.optimizer.Optimizer:
    """As it arrives where it was sent: equal, but for its schedule and the parameters it knows."""
    bare = without_schedule(optimizer)
    bare.param_dict = {}
    return copy.deepcopy(bare)


class SliceOptimizer:
    """An optimizer that keeps its state by slice, but counts updates and looks up factors by key.
    Not thread-safe: the loop's lock guards it.

    The result is that of one process which updates whole parameters: a slice's update count is its
    own, and `num_update` what rank 0's most updated key had reached when the gradient was pushed.

    Parameters
    ----------
    optimizer
        Of this object's own; further updates count from where it stands.
    factors
        The parameters' lr_mult and wd_mult.
    """

    def __init__(self, optimizer: mx.optimizer.Optimizer, factors: Multipliers) -> None:
        self._optimizer = optimizer
        self._settings = SettingsFollower(optimizer, factors)
        self._first_update = optimizer.num_update
        self._master_position = _master_position(optimizer)
        self._states: Dict[Place, Any] = {}
        self._counts: Dict[Place, int] = {}
        self._indices: Dict[int, Any] = {}  # what optimizers call a key
        # Those that a user derives from it need not take several parameters in one call.
        self._takes_several = type(optimizer) is mx.optimizer.SGD

    def groups(self, updates: Sequence[_core.Update]) -> Iterator[List[_core.Update]]:
        """The updates in groups that `update` takes: several at a time cost less than one by one,
        and come to the same."""
        group: List[_core.Update] = []
        keys: Set[int] = set()  # of a key one slice: MXNet counts a key's updates
        for update in updates:
            if group and (update.key in keys or not self._go_together(group[0], update)):
                yield group
                group = []
                keys.clear()
            group.append(update)
            keys.add(update.key)
        if group:
            yield group

    def update(
        self,
        updates: Sequence[_core.Update],
        values: Sequence[mx.nd.NDArray],
        gradients: Sequence[mx.nd.NDArray],
    ) -> None:
        """Overwrites values with their updates; returns before it is done.

        Parameters
        ----------
        updates
            One of `groups`.
        values, gradients
            Arrays of shape (elements,), one an update.
        """
        optimizer = self._optimizer
        indices, states = [], []
        for update, value in zip(updates, values):
            index = self._index(update)
            place = (update.key, update.slice)
            self._settings.apply(update.settings, index)
            if place not in self._states:
                self._states[place] = optimizer.create_state_multi_precision(index, value)
            count = self._counts.get(place, optimizer.begin_num_update)
            optimizer._index_update_count[index] = count
            self._counts[place] = count + 1
            indices.append(index)
            states.append(self._states[place])
        optimizer.num_update = self._first_update + updates[0].step
        if len(updates) > 1:
            optimizer.update_multi_precision(indices, list(values), list(gradients), states)
        else:
            self._apply(indices[0], values[0], gradients[0], states[0])

    def state(self, place: Place) -> Tuple[Any, int]:
        """A slice's state and how often it was updated; raises KeyError before its first update."""
        return self._states[place], self._counts[place]

    def set_state(self, place: Place, state: Any, count: int) -> None:
        """Goes on from a state that `state` returned, here or elsewhere."""
        self._states[place] = state
        self._counts[place] = count

    def _index(self, update: _core.Update) -> Any:
        if update.key not in self._indices:
            self._indices[update.key] = ast.literal_eval(update.literal)
        return self._indices[update.key]

    def _go_together(self, one: _core.Update, other: _core.Update) -> bool:
        return (
            self._takes_several
            and other.elements <= _FEW_ELEMENTS
            and one.dtype == other.dtype != DTYPES[np.float16]
            and (one.step, one.settings) == (other.step, other.settings)
            and not (one.failed or other.failed)
        )

    def _apply(
        self, index: Any, value: mx.nd.NDArray, gradient: mx.nd.NDArray, state: Any
    ) -> None:
        if value.dtype != np.float16 or self._master_position is None:
            gradient = gradient.astype(value.dtype, copy=False)
            return self._optimizer.update_multi_precision(index, value, gradient, state)
        # The sum, in float32, meets the weights in float32, as on MXNet's servers.
        master, inner = state[self._master_position], state[1 - self._master_position]
        self._optimizer.update(index, master, gradient, inner)
        mx.nd.cast(master, dtype=np.float16, out=value)
        return None


def _master_position(optimizer: mx.optimizer.Optimizer) -> Optional[int]:
    """Where in its pair of states an optimizer keeps a weight in float32: 0, 1 or nowhere."""
    if not optimizer.multi_precision:
        return None
    # SGD puts it behind the momentum, the optimizers that leave it to the base class before.
    weight = mx.nd.array([1.5], dtype=np.float16)
    state = copy_optimizer(optimizer).create_state_multi_precision("", weight)
    if not isinstance(state, tuple) or len(state) != 2:
        return None
    for position, part in enumerate(state):
        if isinstance(part, mx.nd.NDArray) and part.dtype == np.float32 and part.asscalar() == 1.5:
            return position
    return None


class OptimizerLoop:
    """A thread that updates slices as their sums complete, the most urgent first.

    Each store of the workers' has an optimizer of its own. Thread-safe.
    """

    def __init__(self, server: _core.Server) -> None:
        self._server = server
        self._values: Dict[Place, mx.nd.NDArray] = {}  # the thread's own
        self._lock = threading.Lock()
        self._optimizers: Dict[int, SliceOptimizer] = {}  # by store; under the lock, they too
        self._thread = threading.Thread(target=self._run, daemon=True, name="optimizer")

    def set_optimizer(self, store: int, optimizer: SliceOptimizer) -> None:
        """Updates a store's slices with this optimizer, from the next completed sum on."""
        with self._lock:
            self._optimizers[store] = optimizer
        self._server.use_optimizer(store)
        if not self._thread.is_alive():
            self._thread.start()

    def state(self, place: Tuple[int, ...]) -> Tuple[Any, int]:
        """That of a slice, as SliceOptimizer.state; its place is (store, key, slice)."""
        store, key, number = place
        with self._lock:
            return self._optimizers[store].state((key, number))

    def set_state(self, place: Tuple[int, ...], state: Any, count: int) -> None:
        """As SliceOptimizer.set_state."""
        store, key, number = place
        with self._lock:
            self._optimizers[store].set_state((key, number), state, count)

    def join(self) -> None:
        """Returns when no update runs any more, once the server's waits have been ended."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        mx.util.set_np_shape(True)  # of this thread: a slice may have no elements
        for updates in iter(self._next, []):
            for store, own in groupby(updates, key=lambda update: update.store):
                with self._lock:
                    optimizer = self._optimizers[store]
                for group in optimizer.groups(list(own)):
                    try:
                        self._update(optimizer, group)
                    except (Exception, SystemExit) as error:  # sys.exit would end this thread alone
                        self._server.abort(
                            f"the optimizer failed on key {', '.join(each.name for each in group)}"
                            f": {type(error).__name__}: {error}"
                        )
                        return

    def _next(self) -> List[_core.Update]:
        return self._server.next_updates(most=_MOST_AT_ONCE, few_elements=_FEW_ELEMENTS)

    def _update(self, optimizer: SliceOptimizer, group: List[_core.Update]) -> None:
        values = [self._value(update) for update in group]
        if group[0].failed:
            values[0].wait_to_read()  # raises what went wrong, unless that was another's of a group
            return
        gradients = [_array(update.gradient()) for update in group]
        with self._lock:
            optimizer.update(group, values, gradients)
        self._server.publish_after(group, [value.handle.value for value in values])

    def _value(self, update: _core.Update) -> mx.nd.NDArray:
        place = (update.key, update.slice)
        if place not in self._values:
            self._values[place] = _array(update.value())
        return self._values[place]


def _array(handle: int) -> mx.nd.NDArray:
    return mx.nd.NDArray(mx.base.NDArrayHandle(handle))
