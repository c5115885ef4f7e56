"""Layers of other Gluon networks for a trace, where MXNet tells of no operators.

These are blocks that are not hybridized, and networks that are with static_shape=True.

A layer's forward pass has ended when the engine could write its first parameter: what was given to
read it has done so. Of a block without parameters its output tells. A layer's backward pass has
ended when that parameter's gradient is computed. Without one, nothing tells of it.
"""
from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import mxnet as mx
from mxnet.gluon import SymbolBlock

from .. import _core
from .traced_graphs import Layer, TracedGraphs, first_of
from .traced_networks import has_fixed_shapes

LayerOnDevice = Tuple[str, int]  # the layer's name, and which of the devices it is
Trained = Tuple[mx.nd.NDArray, mx.nd.NDArray]  # a weight of it there, and its gradient


class TracedBlocks:
    """Marks the layers of each block that is called, and those of each backward pass."""

    def __init__(self) -> None:
        self._worker: Optional[_core.Worker] = None
        self._installed = False
        self._graphs = TracedGraphs()
        self._of_thread = threading.local()

    def look(self, worker: Optional[_core.Worker]) -> None:
        """Marks for this worker; the first one has MXNet's classes tell of blocks and passes."""
        self._worker = worker
        self._of_thread = threading.local()
        if worker is not None and not self._installed:
            self._installed = True
            mx.gluon.Block.__call__ = self._telling_of_calls(mx.gluon.Block.__call__)
            for place in (mx.nd.NDArray, mx.autograd):
                place.backward = self._telling_of_gradients(place.backward)

    def _telling_of_calls(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def call_and_tell(block: mx.gluon.Block, *arguments: Any) -> Any:
            outputs = call(block, *arguments)
            output = _first_array(outputs)
            if self._worker is not None and output is not None:  # None for symbols
                for layer in self._layers(block):
                    self._mark_forward(self._worker, layer, output)
            return outputs

        return call_and_tell

    def _telling_of_gradients(self, backward: Callable[..., None]) -> Callable[..., None]:
        def backward_and_tell(*arguments: Any, **named: Any) -> None:
            if self._worker is None:
                return backward(*arguments, **named)
            trained = self._trained()
            with _knowing_what_is_written(trained) as written:
                backward(*arguments, **named)
            for layer, gradients in written.items():
                self._worker.mark_layer(layer, backward=True, reads=gradients)
            return None

        return backward_and_tell

    def _layers(self, block: mx.gluon.Block) -> List[Layer]:
        """Those that a call of this block has run, but for what its children have told."""
        operator = getattr(block, "_cached_op", None)
        if operator is not None and (block._active or isinstance(block, SymbolBlock)):
            return self._graphs.layers(block) if has_fixed_shapes(block) else []
        if block._children and not block._reg_params:
            return []
        return [Layer(f"{block.prefix}fwd", first_of(block._reg_params.values()))]

    def _mark_forward(self, worker: _core.Worker, layer: Layer, output: mx.nd.NDArray) -> None:
        parameter = layer.parameter
        # An output may lie where no parameter does: a block on GPUs may return an array of a CPU.
        contexts = [] if parameter is None or parameter._data is None else parameter._ctx_list
        if parameter is None or output.context not in contexts:
            worker.mark_layer(layer.name, backward=False, reads=[output.handle.value])
            return
        place = contexts.index(output.context)
        weight = parameter._data[place]
        worker.mark_layer(layer.name, backward=False, writes=[weight.handle.value])
        if parameter._grad is not None:
            used = self._used()
            used.pop((layer.name, place), None)  # the order is that of the last calls
            used[layer.name, place] = weakref.ref(parameter)

    def _used(self) -> Dict[LayerOnDevice, weakref.ref]:
        """The parameters that this thread's calls have used, which live no longer for that.
        Gradients are written by the thread that has computed the loss."""
        found: Dict[LayerOnDevice, weakref.ref] = self._of_thread.__dict__.setdefault("used", {})
        return found

    def _trained(self) -> Dict[LayerOnDevice, Trained]:
        used, found = self._used(), {}
        for (name, place), reference in list(used.items()):
            parameter = reference()
            if parameter is None or not parameter._grad or place >= len(parameter._grad):
                del used[name, place]
            else:
                found[name, place] = parameter._data[place], parameter._grad[place]
        return found


@contextmanager
def _knowing_what_is_written(
    trained: Dict[LayerOnDevice, Trained],
) -> Iterator[Dict[str, List[int]]]:
    """Yields a dictionary, empty until the pass is over: by layer, those that ran last first, the
    handles of the gradients that it writes. The loss need not depend on all that was called.

    MXNet notes at a weight that its gradient is new, and Trainer looks whether it is; so what this
    pass does not write is left as it was found.
    """
    before = {layer: weight._fresh_grad for layer, (weight, _) in trained.items()}
    for weight, _ in trained.values():
        weight._fresh_grad = False
    written: Dict[str, List[int]] = {}
    try:
        yield written
    finally:
        for layer, (weight, gradient) in reversed(list(trained.items())):
            if weight._fresh_grad:
                written.setdefault(layer[0], []).append(gradient.handle.value)
            elif before[layer]:
                weight._fresh_grad = True


def _first_array(outputs: Any) -> Optional[mx.nd.NDArray]:
    while isinstance(outputs, (list, tuple)) and outputs:
        outputs = outputs[0]
    return outputs if isinstance(outputs, mx.nd.NDArray) else None

