"""Which optimizers may update parameters slice by slice, on the servers."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Tuple

import mxnet as mx
import numpy as np

from ..errors import KVStoreError
from ..protocol.state_format import flatten
from .slice_optimizer import SliceOptimizer, copy_optimizer

# Norms over some rows of these, and their ratios, are not those over all.
_WEIGHTS = np.array([[0.01, -0.02], [3.0, 0.5], [-40.0, 20.0]], np.float32)
_GRADIENTS = np.array([[5.0, 1.0], [-0.3, 0.2], [0.1, 2.0]], np.float32)
# Enough for what happens every few steps, and far larger gradients for what clips a whole tensor.
_STEPS = 20
_LARGE = 1e4


def updates_slices(optimizer: mx.optimizer.Optimizer) -> bool:
    """Whether updating a parameter slice by slice comes to the same as updating it whole.

    Tried out on a small parameter, with a copy and a learning rate that shows, for 20 steps of
    small gradients and 20 of large ones: optimizers that look at a whole layer (LARS, LAMB) or
    count over all parameters (Nadam) give themselves away, and so do a user's own, but for what
    they do later. Neither may one whose state cannot be saved slice by slice.

    Raises
    ------
    KVStoreError
        For an optimizer, other than MXNet's SGLD, that draws random numbers: workers would draw
        different ones.
    """
    if isinstance(optimizer, mx.optimizer.SGLD):
        return True  # an element's noise is its own
    try:
        (small, state), (again, _) = _updated_whole(optimizer), _updated_whole(optimizer)
    except Exception:
        return False  # a user's own that wants to know the parameter; it will see whole ones
    if _differ(small, again):
        raise KVStoreError(
            f"optimizer {type(optimizer).__name__} gives another result each time, so workers "
            "would not keep the same parameters; of the random ones only SGLD works here"
        )
    try:
        if not small.any() or not _is_cut_with_the_parameter(state):
            return False
        if not _same(small, _updated_in_slices(optimizer, 1.0)):
            return False
        large, _ = _updated_whole(optimizer, _LARGE)
        finite = bool(np.isfinite(large).all())  # of very large gradients it need not be
        return not finite or _same(large, _updated_in_slices(optimizer, _LARGE))
    except Exception:
        return False  # it may insist on a shape


def draws_at_random(optimizer: mx.optimizer.Optimizer) -> bool:
    """Whether workers that update by it would each draw numbers of their own, as found out by the
    same trial."""
    try:
        return isinstance(optimizer, mx.optimizer.SGLD) or _differ(
            _updated_whole(optimizer)[0], _updated_whole(optimizer)[0]
        )
    except Exception:
        return False  # a user's own that wants to know the parameter


def _differ(once: np.ndarray, again: np.ndarray) -> bool:
    """Whether two trials of one optimizer tell that it draws random numbers."""
    return bool(np.isfinite(once).all()) and not _same(once, again)


@dataclass(frozen=True)
class _Trial:
    """A step of the trial, as the core hands out updates."""

    slice: int
    step: int
    key: int = 0
    literal: str = "0"
    settings: str = ""


def _is_cut_with_the_parameter(state: Any) -> bool:
    """Whether a state is what a server can save of a slice, and a worker put together: of other
    arrays, such as the last few gradients, only the first slice's would be left."""
    try:
        _, arrays = flatten(state)
    except KVStoreError:
        return False
    return all(array.shape == _WEIGHTS.shape or array.size == 1 for array in arrays)


def _same(changes: np.ndarray, others: np.ndarray) -> bool:
    return np.allclose(changes, others, rtol=1e-3, atol=1e-6 * np.abs(changes).max())


def _on_trial(optimizer: mx.optimizer.Optimizer) -> mx.optimizer.Optimizer:
    copied = copy_optimizer(optimizer)
    copied.lr = 0.1  # a script's may be 0 at first
    copied.rescale_grad = 1.0  # and that so small that nothing would be seen to change
    # The trial's parameter is none of the script's: optimizers treat some by name, and it has not
    # been updated yet.
    copied.idx2name, copied.lr_mult, copied.wd_mult = {}, {}, {}
    copied.num_update = copied.begin_num_update
    copied._index_update_count = {}
    copied._all_index_update_counts = {0: copied._index_update_count}
    return copied


def _updated_whole(
    optimizer: mx.optimizer.Optimizer, scale: float = 1.0
) -> Tuple[np.ndarray, Any]:
    """What the trial's steps add to its parameter, and what the optimizer then remembers of it."""
    updater = mx.optimizer.get_updater(_on_trial(optimizer))
    value = mx.nd.array(_WEIGHTS)
    for step in range(1, _STEPS + 1):
        updater(0, mx.nd.array(scale * _GRADIENTS / step), value)
    return value.asnumpy() - _WEIGHTS, updater.states[0]


def _updated_in_slices(optimizer: mx.optimizer.Optimizer, scale: float) -> np.ndarray:
    sliced = SliceOptimizer(_on_trial(optimizer), {})
    values = [mx.nd.array(part) for part in np.split(_WEIGHTS.reshape(-1), [2])]
    gradients: List[np.ndarray] = np.split(scale * _GRADIENTS.reshape(-1), [2])
    for step in range(1, _STEPS + 1):
        for number, gradient in enumerate(gradients):
            trial: Any = _Trial(number, step)
            sliced.update(trial, values[number], mx.nd.array(gradient / step))
    found = np.concatenate([value.asnumpy() for value in values])
    return found.reshape(_WEIGHTS.shape) - _WEIGHTS
