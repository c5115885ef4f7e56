"""The trace of a network of one's own."""
from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Optional, Sequence

import mxnet as mx

from benchmarks.replay.costs import P4000, Shape, layers_of
from benchmarks.replay.trace import Trace, TraceError


def profile(where: str, shapes: Sequence[Shape], seconds: Optional[float], source: str) -> Trace:
    """The trace of the network that a function returns.

    Parameters
    ----------
    where : str
        `module:function`; modules are looked for in the working directory as well.
    shapes : sequence of tuple of int
        Of the inputs, the batch first.
    seconds : float, optional
        That an iteration takes on the device that is asked about, without communication; all layers
        are scaled to it. Without it they are those of the P3 paper's card.
    source : str
        What the trace says of its origin.

    Raises
    ------
    TraceError
        Where there is no such function, or its network makes no graph.
    """
    network = _network(where)
    inputs = {f"data{number}": shape for number, shape in enumerate(shapes)}
    layers = layers_of(network, inputs, P4000)
    if not any(layer.parameters for layer in layers):
        raise TraceError(f"{where} has no parameters that are trained")
    trace = Trace(where.rpartition(":")[2], shapes[0][0], P4000.name, source, layers)
    if seconds is None:
        return trace
    scaled = trace.scaled(seconds / trace.compute)
    return Trace(
        scaled.name, scaled.batch, f"one that takes {seconds:g} s", source, scaled.layers
    )


def _network(where: str) -> mx.gluon.HybridBlock:
    module, _, name = where.partition(":")
    if not name:
        raise TraceError(f"{where!r} names no network; it must be MODULE:FUNCTION")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise TraceError(f"there is no network {where}: {error}") from error
    network = found() if callable(found) and not isinstance(found, mx.gluon.Block) else found
    if not isinstance(network, mx.gluon.HybridBlock):
        raise TraceError(f"{where} gives a {type(network).__name__}; it must be a HybridBlock")
    return network
