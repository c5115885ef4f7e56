"""Which layer is the last of a network that Trainer or Module trains."""
from __future__ import annotations

import weakref
from typing import Any, Callable, List, NamedTuple, Optional

import mxnet as mx
from mxnet import gluon

from ..compression.last_layer import last_declared, last_of_graph
from ..keys.names import Key


class Declaration(NamedTuple):
    """What a Trainer was given, which it keeps sorted by name: its parameters as they were
    declared, and the network that has them, where that is known."""

    parameters: List[gluon.Parameter]
    network: Callable[[], Optional[gluon.Block]]


def remembering_network(collect: Callable[..., Any]) -> Callable[..., Any]:
    """Block.collect_params, whose dictionary knows the block."""

    def collect_params(block: gluon.Block, select: Optional[str] = None) -> gluon.ParameterDict:
        found = collect(block, select)
        found._network = weakref.ref(block)
        return found

    return collect_params


def remembering_declaration(begin: Callable[..., None]) -> Callable[..., None]:
    """Trainer.__init__, which keeps the order that it is given."""

    def init(trainer: gluon.Trainer, params: Any, *arguments: Any, **named: Any) -> None:
        begin(trainer, params, *arguments, **named)
        network = getattr(params, "_network", lambda: None)
        values = params.values() if hasattr(params, "values") else params
        trainer._declaration = Declaration(list(values), network)

    return init


def last_layer_of_trainer(trainer: gluon.Trainer) -> List[Key]:
    """By the graph of a hybridized network that has computed something; otherwise as declared, and
    nothing for a Trainer that was made before kvstore_ext was imported."""
    declared: Optional[Declaration] = getattr(trainer, "_declaration", None)
    if declared is None:
        return []
    shapes = {
        parameter.name: parameter.shape or ()  # None until a forward pass has told
        for parameter in declared.parameters
        if parameter.grad_req != "null"
    }
    graph = getattr(declared.network(), "_cached_graph", ())
    if graph and set(shapes) <= set(graph[1].list_arguments()):
        last = last_of_graph(graph[1], shapes)
    else:
        last = last_declared(shapes)
    return [trainer._param2idx[name] for name in last]


def last_layer_of_module(module: mx.mod.Module) -> List[Key]:
    """By its symbol."""
    group = module._exec_group
    shapes = {
        name: arrays[0].shape
        for name, arrays in zip(group.param_names, group.param_arrays)
        if name not in module._fixed_param_names
    }
    return list(last_of_graph(module.symbol, shapes))
