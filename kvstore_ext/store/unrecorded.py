"""Calls of a store within mx.autograd.record()."""
from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar, cast

import mxnet as mx

_Call = TypeVar("_Call", bound=Callable[..., Any])


def unrecorded(call: _Call) -> _Call:
    """Has what a call computes be no part of the graph that a script records.

    Sums over devices and copies are MXNet's operators here, which a graph would take in: MXNet then
    refuses to write into weights and gradients, which have their places in it. Gluon makes such
    calls itself, as the first forward pass of a network with row-sparse weights initialises all of
    its keys.
    """

    @functools.wraps(call)
    def run(*arguments: Any, **named: Any) -> Any:
        if not mx.autograd.is_recording():
            return call(*arguments, **named)
        with mx.autograd.pause(train_mode=mx.autograd.is_training()):
            return call(*arguments, **named)

    return cast(_Call, run)
