"""Steps of MXNet's SGD and Adam that the core computes by itself, with the same bits."""
from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Callable, Optional

import mxnet as mx
import numpy as np

from .. import _core
from ..keys.key_arrays import DTYPES

_LARGEST = 3e38  # that of float32 is a little larger

# Updates a slice, with the parameter's index, the slice's state and the number of this update.
Step = Callable[[_core.Server, _core.Update, Any, Any, int], None]


def step_by_kernel(optimizer: mx.optimizer.Optimizer) -> Optional[Step]:
    """How the core makes this optimizer's steps, of slices that `suits`; None where only MXNet
    can. Classes that a user derives from MXNet's are their own."""
    if type(optimizer) is mx.optimizer.SGD:
        return _sgd(optimizer)
    if type(optimizer) is mx.optimizer.Adam:
        return _adam(optimizer)
    return None


def suits(update: _core.Update, optimizer: mx.optimizer.Optimizer) -> bool:
    """Whether a slice's weights are in float32, or have a copy that is."""
    return update.dtype == DTYPES[np.float32] or _has_master(update, optimizer)


def _has_master(update: _core.Update, optimizer: mx.optimizer.Optimizer) -> bool:
    return update.dtype == DTYPES[np.float16] and bool(optimizer.multi_precision)


def _sgd(optimizer: mx.optimizer.SGD) -> Step:
    def step(
        server: _core.Server, update: _core.Update, index: Any, state: Any, count: int
    ) -> None:
        velocity, master = state if _has_master(update, optimizer) else (state, None)
        has_momentum = optimizer.momentum > 0
        if has_momentum and velocity is None:
            raise ValueError(f"its momentum is {optimizer.momentum}, and was 0 at its first update")
        server.update_by_sgd(
            update,
            lr=optimizer._get_lr(index),  # MXNet reads lists of numbers exactly
            wd=optimizer._get_wd(index),
            rescale=_as_read(optimizer.rescale_grad),
            clip=_as_read(optimizer.clip_gradient or -1.0),
            momentum=_as_read(optimizer.momentum) if has_momentum else 0.0,
            velocity=_handle(velocity) if has_momentum else 0,
            master=_handle(master),
        )

    return step


def _adam(optimizer: mx.optimizer.Adam) -> Step:
    def step(
        server: _core.Server, update: _core.Update, index: Any, state: Any, count: int
    ) -> None:
        master, inner = state if _has_master(update, optimizer) else (None, state)
        mean, variance = inner
        corrected = math.sqrt(1.0 - optimizer.beta2**count) / (1.0 - optimizer.beta1**count)
        server.update_by_adam(
            update,
            lr=_as_read(optimizer._get_lr(index) * corrected),
            wd=_as_read(optimizer._get_wd(index)),
            rescale=_as_read(optimizer.rescale_grad),
            clip=_as_read(optimizer.clip_gradient or -1.0),
            beta1=_as_read(optimizer.beta1),
            beta2=_as_read(optimizer.beta2),
            epsilon=_as_read(optimizer.epsilon),
            mean=_handle(mean),
            variance=_handle(variance),
            master=_handle(master),
        )

    return step


def _handle(array: Optional[mx.nd.NDArray]) -> int:
    return 0 if array is None else array.handle.value or 0


@lru_cache(maxsize=1024)
def _as_read(value: float) -> float:
    """What MXNet makes of a number that it gets as text, as all of an operator's are: its reader
    may be off by the last bit. An operator that gives its number back tells."""
    lowest = mx.nd.array([-_LARGEST])
    return float(mx.nd.clip(lowest, a_min=value, a_max=_LARGEST).asscalar())
