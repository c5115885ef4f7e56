"""How an optimizer goes on from where another one of its class was."""
from __future__ import annotations

import pickle

import mxnet as mx


def packed(optimizer: mx.optimizer.Optimizer) -> bytes:
    """An optimizer with its counts and its schedule, without the parameters that it knows."""
    return pickle.dumps(optimizer)


def resume(optimizer: mx.optimizer.Optimizer, saved: bytes) -> None:
    """Gives an optimizer all that another had, but for the parameters that it knows. It stays the
    object that scripts, Trainer and Module have."""
    attributes = dict(vars(pickle.loads(saved)))
    attributes.pop("param_dict", None)
    vars(optimizer).update(attributes)
