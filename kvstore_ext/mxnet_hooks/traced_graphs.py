"""The layers of a network that is compiled: operators with parameters, as its graph has them."""
from __future__ import annotations

import json
import weakref
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

import mxnet as mx


class Layer(NamedTuple):
    """An operator or a block, and the first of the parameters that it uses itself, which speaks for
    the others; None without any."""

    name: str
    parameter: Optional[mx.gluon.Parameter]


def first_of(parameters: Iterable[mx.gluon.Parameter]) -> Optional[mx.gluon.Parameter]:
    """The first that is trained, or else the first."""
    known = list(parameters)
    trained = (parameter for parameter in known if parameter.grad_req != "null")
    return next(trained, known[0] if known else None)


class TracedGraphs:
    """Remembers the layers of each network."""

    def __init__(self) -> None:
        self._found: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def layers(self, block: mx.gluon.HybridBlock) -> List[Layer]:
        """The operators of a compiled network that have parameters, in the order of its graph."""
        operator, layers = self._found.get(block, (None, []))
        if operator is not block._cached_op:
            layers = _layers(block)
            self._found[block] = (block._cached_op, layers)
        return layers


def _layers(block: mx.gluon.HybridBlock) -> List[Layer]:
    parameters = {each.name: each for is_data, each in block._cached_op_args if not is_data}
    nodes: List[Dict[str, Any]] = json.loads(block._cached_graph[1].tojson())["nodes"]
    found = []
    for node in nodes:
        inputs = [nodes[entry[0]]["name"] for entry in node["inputs"]]
        own = first_of(parameters[name] for name in inputs if name in parameters)
        if own is not None:
            found.append(Layer(node["name"], own))
    return found
