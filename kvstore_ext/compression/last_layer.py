"""Which of a network's parameters are its last layer's, from its graph or their declaration.

A layer is a matrix, which is any parameter of two dimensions or more, and the vectors beside it.
"""
from __future__ import annotations

import json
from typing import Dict, List, Mapping, Optional, Set, Tuple, TypeVar

import mxnet as mx

Shape = Tuple[int, ...]
Name = TypeVar("Name")


def last_declared(shapes: Mapping[Name, Shape]) -> List[Name]:
    """The last matrix and the vectors after it; without any, the vector before it that has its
    length, which may be a bias that is declared first. Without matrices the last parameter.

    Parameters
    ----------
    shapes
        The parameters', in the order in which the network declares them.
    """
    order = list(shapes)
    matrices = [at for at, name in enumerate(order) if len(shapes[name]) > 1]
    if not matrices:
        return order[-1:]
    last = matrices[-1]
    before = order[max(0, last - 1) : last]
    if order[last + 1 :] or not before or shapes[before[0]] != shapes[order[last]][:1]:
        before = []
    return [*before, *order[last:]]


def last_of_graph(symbol: mx.sym.Symbol, shapes: Mapping[str, Shape]) -> List[str]:
    """The parameters that are between the network's outputs and its last matrices, with these: one
    layer for each branch that ends in an output.

    Parameters
    ----------
    symbol
        With the network's outputs, or its losses.
    shapes
        The trained parameters', by the names of their variables.
    """
    graph = json.loads(symbol.tojson())
    nodes = graph["nodes"]
    held = _parameters_of(nodes, set(shapes))
    found: Set[str] = set()
    reached: Set[int] = set()
    left = [head[0] for head in graph["heads"]]
    while left:
        node = left.pop()
        if node in reached:
            continue
        reached.add(node)
        inputs = [entry[0] for entry in nodes[node]["inputs"]]
        beside = set().union(*[held[entry] or () for entry in inputs])
        found |= beside
        if all(len(shapes[name]) < 2 for name in beside):
            left += [entry for entry in inputs if held[entry] is None]
    return [name for name in shapes if name in found]


def _parameters_of(nodes: List[Dict], names: Set[str]) -> List[Optional[Set[str]]]:
    """For each node of a graph in topological order, the parameters that it is computed from; None
    where it is computed from data, too."""
    held: List[Optional[Set[str]]] = []
    for node in nodes:
        if node["op"] == "null":
            held.append({node["name"]} if node["name"] in names else None)
            continue
        inputs = [held[entry[0]] for entry in node["inputs"]]
        known = [parameters for parameters in inputs if parameters is not None]
        held.append(set().union(*known) if len(known) == len(inputs) else None)
    return held
