"""MXNet's optimizers on the servers, where a parameter is a number of slices."""
from __future__ import annotations

import ast
import base64
import copy
import pickle
import threading
from typing import Any, Dict, Optional, Tuple

import mxnet as mx

from . import _core
from .errors import KVStoreError
from .trusted_pickle import load_trusted

# Those whose step on an element depends on others: of the layer (norms), or of the model (Nadam's
# schedule is shared by all keys).
NOT_ELEMENTWISE = frozenset({"lamb", "lans", "lars", "lbsgd", "nadam", "sgld", "groupadagrad"})

# What an optimizer looks a parameter's own factors up by -> (lr_mult, wd_mult).
Multipliers = Dict[Any, Tuple[float, float]]


def check_elementwise(optimizer: mx.optimizer.Optimizer) -> None:
    """Refuses an optimizer that has to see whole layers.

    Raises
    ------
    KVStoreError
        With the optimizer's name and the way out.
    """
    for base in type(optimizer).__mro__:
        if base.__name__.lower() in NOT_ELEMENTWISE:
            raise KVStoreError(
                f"optimizer {type(optimizer).__name__} looks at more than one element at a time, "
                "but a server holds only slices of a parameter: update on the workers, with "
                "Trainer(..., update_on_kvstore=False) or MXNET_UPDATE_ON_KVSTORE=0 for a Module"
            )


def multipliers(optimizer: mx.optimizer.Optimizer) -> Multipliers:
    """Gluon's lr_mult and wd_mult, which MXNet leaves behind when it pickles an optimizer."""
    return {
        index: (parameter.lr_mult, parameter.wd_mult)
        for index, parameter in optimizer.param_dict.items()
    }


def pack_optimizer(optimizer: mx.optimizer.Optimizer) -> str:
    """An optimizer and its parameters' multipliers, as text."""
    data = pickle.dumps((optimizer, multipliers(optimizer)))
    return base64.b64encode(data).decode()


def unpack_optimizer(
    text: str, trusted_modules: Tuple[str, ...]
) -> Tuple[mx.optimizer.Optimizer, Multipliers]:
    """What `pack_optimizer` packed; raises pickle.UnpicklingError for anything else."""
    packed = load_trusted(base64.b64decode(text), trusted_modules)
    kinds = [type(part) for part in packed] if isinstance(packed, tuple) else [type(packed)]
    if len(kinds) != 2 or not issubclass(kinds[0], mx.optimizer.Optimizer) or kinds[1] is not dict:
        found = ", ".join(kind.__name__ for kind in kinds)
        raise pickle.UnpicklingError(f"a worker sent {found}; it must be an optimizer and a dict")
    return packed


class _Multiplier:
    """Stands in for the gluon Parameter that an optimizer asks for its multipliers."""

    def __init__(self, lr_mult: float, wd_mult: float) -> None:
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult


class SliceOptimizer:
    """An optimizer that keeps its state by slice, but counts updates and looks up factors by key.

    The result is that of one process which updates whole parameters: a slice's update count is its
    own, and `num_update`, by which schedulers choose the learning rate, is what the worker's most
    updated key had reached when the gradient was pushed.
    """

    def __init__(self, optimizer: mx.optimizer.Optimizer, factors: Multipliers) -> None:
        self._optimizer = optimizer
        if factors and not optimizer.param_dict:
            optimizer.param_dict = {
                index: _Multiplier(*pair) for index, pair in factors.items()
            }
        self._schedule = copy.deepcopy(optimizer.lr_scheduler)
        self._states: Dict[Tuple[int, int], Any] = {}
        self._counts: Dict[Tuple[int, int], int] = {}

    def update(self, update: _core.Update, value: mx.nd.NDArray) -> None:
        """Overwrites value, of shape (elements,), with its update; returns before it is done."""
        optimizer = self._optimizer
        index = ast.literal_eval(update.name)
        place = (update.key, update.slice)
        if place not in self._states:
            self._states[place] = optimizer.create_state_multi_precision(index, value)
            self._counts[place] = optimizer.begin_num_update
        optimizer._index_update_count[index] = self._counts[place]
        step = optimizer.begin_num_update + update.step
        if self._schedule is not None and step < optimizer.num_update:
            # Another key was ahead. MXNet's schedulers cannot go back, but a new one gets anywhere.
            optimizer.lr_scheduler = copy.deepcopy(self._schedule)
        optimizer.num_update = step
        gradient = mx.nd.from_dlpack(update.gradient())
        optimizer.update_multi_precision(index, value, gradient, self._states[place])
        self._counts[place] += 1


class OptimizerLoop:
    """A thread that updates slices as their sums complete, the most urgent first."""

    def __init__(self, server: _core.Server) -> None:
        self._server = server
        self._values: Dict[Tuple[int, int], mx.nd.NDArray] = {}
        self._slices: Optional[SliceOptimizer] = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="optimizer")

    def set_optimizer(self, optimizer: mx.optimizer.Optimizer, factors: Multipliers) -> None:
        """Updates with this optimizer, from its first step, from the next completed sum on."""
        self._slices = SliceOptimizer(optimizer, factors)
        self._server.use_optimizer()
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        """Returns when no update runs any more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        mx.util.set_np_shape(True)  # of this thread: a slice may have no elements
        while not self._stopping.is_set():
            update = self._server.next_update(0.2)
            if update is None:
                continue
            try:
                self._update(update)
            except Exception as error:
                self._server.abort(
                    f"the optimizer failed on key {update.name}: {type(error).__name__}: {error}"
                )
                return

    def _update(self, update: _core.Update) -> None:
        assert self._slices is not None
        place = (update.key, update.slice)
        value = self._values.get(place)
        if value is None:
            value = self._values[place] = mx.nd.from_dlpack(update.value())
        if update.failed:
            value.wait_to_read()  # raises what went wrong
        self._slices.update(update, value)
        self._server.publish_after(update, value.handle.value)


