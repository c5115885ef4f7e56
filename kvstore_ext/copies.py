"""Copies of what training has: arrays as they are now, and how an optimizer goes on."""
from __future__ import annotations

import pickle
from typing import Any, Dict, Iterable, Mapping

import mxnet as mx
import numpy as np

from .errors import KVStoreError


def copied(value: Any) -> Any:
    """A copy that stays as it is; of MXNet's arrays, made in order with what computes them, in the
    host's memory."""
    if isinstance(value, mx.nd.NDArray):
        return value.copyto(mx.cpu())
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {name: copied(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [copied(part) for part in value]
        if hasattr(value, "_fields"):  # a named tuple
            return type(value)(*parts)
        return parts if isinstance(value, list) else tuple(parts)
    return value


def packed(optimizer: mx.optimizer.Optimizer, states: Any = None) -> bytes:
    """An optimizer with its counts and its schedule, without the parameters that it knows; behind
    states, where there are any, as MXNet writes both.

    Raises
    ------
    KVStoreError
        For one with what cannot be pickled, such as a schedule that is a lambda.
    """
    try:
        return pickle.dumps(optimizer if states is None else (states, optimizer))
    except Exception as error:
        raise KVStoreError(
            f"optimizer {type(optimizer).__name__} cannot be saved: {error}; what it has, its "
            "schedule too, must be of classes that are defined in a module"
        ) from None


def resume(optimizer: mx.optimizer.Optimizer, saved: bytes) -> None:
    """Gives an optimizer all that another of its class had, but for the parameters that it knows,
    and by how much it scales gradients: the run may go on with other batches, or other workers. It
    stays the object that scripts, Trainer and Module have, and so does its schedule."""
    attributes = dict(vars(pickle.loads(saved)))
    for own in ("param_dict", "rescale_grad"):
        attributes.pop(own, None)
    schedule, resumed = optimizer.lr_scheduler, attributes.get("lr_scheduler")
    if schedule is not None and type(schedule) is type(resumed):
        vars(schedule).update(vars(resumed))
        attributes["lr_scheduler"] = schedule
    vars(optimizer).update(attributes)


def update_counts(optimizer: mx.optimizer.Optimizer) -> Dict[Any, int]:
    """How often each index was updated: by device, as MXNet counts, the most of these."""
    found: Dict[Any, int] = {}
    for own in optimizer._all_index_update_counts.values():
        for index, count in own.items():
            found[index] = max(int(count), found.get(index, 0))  # NumPy's are no json
    return found


def count_on(
    optimizer: mx.optimizer.Optimizer, counts: Mapping[Any, int], devices: Iterable[int] = ()
) -> None:
    """Counts on from what another worker has counted, whose devices may have other numbers: for all
    devices that the optimizer knows, and for these."""
    tables = optimizer._all_index_update_counts
    for device in {*tables, *devices}:
        tables.setdefault(device, {}).update(counts)
