"""MXNet's optimizers on the servers, where a parameter is a number of slices."""
from __future__ import annotations

import ast
import copy
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

import mxnet as mx
import numpy as np

from .. import _core
from .kernel_updates import step_by_kernel, suits
from .settings import Multipliers, SettingsFollower, plain_number, scheduled_rate, with_names

# A slice of a parameter: its key's identity, and its number.
Place = Tuple[int, int]

# Updates that are taken from the core together. More would keep those waiting that are more urgent
# and come meanwhile.
_MOST_AT_ONCE = 16

# Updating more elements takes longer than waking up for them.
_FEW_ELEMENTS = 4096


def without_schedule(optimizer: mx.optimizer.Optimizer) -> mx.optimizer.Optimizer:
    """A shallow copy, with numbers for arrays of one, the learning rate that the schedule has come
    to, and multipliers under names, too."""
    bare = copy.copy(optimizer)
    for name, value in vars(optimizer).items():
        if isinstance(value, np.ndarray):  # which MXNet would change where it is
            setattr(bare, name, plain_number(value))
    bare.lr_mult = dict(with_names(optimizer, "lr_mult"))
    bare.wd_mult = dict(with_names(optimizer, "wd_mult"))
    if bare.lr_scheduler is not None:
        bare.lr = scheduled_rate(bare)
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
    own, and `num_update` what the most updated key had reached when the gradient was pushed, of the
    lowest rank that takes part.

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
        # Some may be NumPy's, which are no json: counts travel as that.
        self._first_update, self._begin = int(optimizer.num_update), int(optimizer.begin_num_update)
        self._first_counts = {  # by what optimizers call a key
            index: int(count) for index, count in optimizer._index_update_count.items()
        }
        self._master_position = _master_position(optimizer)
        self._states: Dict[Place, Any] = {}
        self._counts: Dict[Place, int] = {}
        self._indices: Dict[int, Any] = {}  # what optimizers call a key
        self._step = step_by_kernel(optimizer)

    def update_by_kernel(self, server: _core.Server, update: _core.Update) -> bool:
        """Has the core update a slice and send it to all workers; False where only MXNet can, and
        nothing has happened."""
        if self._step is None or not suits(update, self._optimizer):
            return False
        index, state = self._prepare(update, lambda: _array(update.value()))
        self._step(server, update, index, state, self._counts[update.key, update.slice])
        return True

    def update(
        self, update: _core.Update, value: mx.nd.NDArray, gradient: mx.nd.NDArray
    ) -> None:
        """Overwrites a slice's value, of shape (elements,), by MXNet; returns before it is done."""
        index, state = self._prepare(update, lambda: value)
        self._optimizer._index_update_count[index] = self._counts[update.key, update.slice] - 1
        self._optimizer.num_update = self._first_update + update.step
        if value.dtype != np.float16 or self._master_position is None:
            gradient = gradient.astype(value.dtype, copy=False)
            return self._optimizer.update_multi_precision(index, value, gradient, state)
        # The sum, in float32, meets the weights in float32, as on MXNet's servers.
        master, inner = state[self._master_position], state[1 - self._master_position]
        self._optimizer.update(index, master, gradient, inner)
        mx.nd.cast(master, dtype=np.float16, out=value)
        return None

    def state(self, place: Place) -> Tuple[Any, int]:
        """A slice's state and how often it was updated; raises KeyError before its first update."""
        return self._states[place], self._counts[place]

    def set_state(self, place: Place, state: Any, count: int) -> None:
        """Goes on from a state that `state` returned, here or elsewhere."""
        self._states[place] = state
        self._counts[place] = count

    def _prepare(
        self, update: _core.Update, value: Callable[[], mx.nd.NDArray]
    ) -> Tuple[Any, Any]:
        """What optimizers call the key, and the slice's state; counts the update, and takes over
        what has come with it."""
        if update.key not in self._indices:
            self._indices[update.key] = ast.literal_eval(update.literal)
        index, place = self._indices[update.key], (update.key, update.slice)
        self._settings.apply(update.settings, index)
        if place not in self._states:
            self._states[place] = self._optimizer.create_state_multi_precision(index, value())
        first = self._first_counts.get(index, self._begin)
        self._counts[place] = self._counts.get(place, first) + 1
        return index, self._states[place]


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

    Each store of the workers' has an optimizer of its own. `rank` is the server's, to be set before
    the first of them. Thread-safe.
    """

    def __init__(self, server: _core.Server) -> None:
        self.rank = 0
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
        # Of this thread as well, and MXNet begins all alike: SGLD's noise is to be a server's own.
        mx.random.seed(self.rank)
        for updates in iter(self._next, []):
            for update in updates:
                try:
                    self._update(update)
                except (Exception, SystemExit) as error:  # sys.exit would end this thread alone
                    self._server.abort(
                        f"the optimizer failed on key {update.name}: {type(error).__name__}: "
                        f"{error}"
                    )
                    return

    def _next(self) -> List[_core.Update]:
        return self._server.next_updates(most=_MOST_AT_ONCE, few_elements=_FEW_ELEMENTS)

    def _update(self, update: _core.Update) -> None:
        if update.failed:
            self._value(update).wait_to_read()  # raises what went wrong
            return
        with self._lock:
            optimizer = self._optimizers[update.store]
            if optimizer.update_by_kernel(self._server, update):
                return
        value, gradient = self._value(update), _array(update.gradient())
        with self._lock:
            optimizer.update(update, value, gradient)
        self._server.publish_after(update, value.handle.value)

    def _value(self, update: _core.Update) -> mx.nd.NDArray:
        place = (update.key, update.slice)
        if place not in self._values:
            self._values[place] = _array(update.value())
        return self._values[place]


def _array(handle: int) -> mx.nd.NDArray:
    return mx.nd.NDArray(mx.base.NDArrayHandle(handle))
