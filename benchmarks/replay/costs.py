"""What a network's operations cost, from its graph alone: nothing is computed.

An operation takes as long as its arithmetic or its memory traffic, whichever is longer (Williams,
Waterman and Patterson, "Roofline", CACM 2009, figure 1). Arithmetic is counted for convolutions
and products of matrices, and nothing else has any that counts. The traffic is that of every operand
and result, once, and in a recurrent layer its weights' once a step. The backward pass costs twice
the forward pass, as it has the gradients of the inputs and of the parameters to compute.
"""
from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import mxnet as mx

from benchmarks.replay.trace import Layer, TraceError

Shape = Tuple[int, ...]
_FLOAT_BYTES = 4
_BACKWARD = 2  # times the forward pass
_FREE = ("Reshape", "reshape", "Flatten", "flatten", "expand_dims", "squeeze", "_copy", "identity")


@dataclass(frozen=True)
class Device:
    """What computes.

    Parameters
    ----------
    name : str
    flops : float
        Floating-point operations a second, float32: the data sheet's.
    memory : float
        Bytes a second from and to its memory: the data sheet's.
    reached : float
        The share of both that networks reach: an assumption.
    """

    name: str
    flops: float
    memory: float
    reached: float

    def seconds(self, operations: float, traffic: float) -> float:
        """That an operation takes."""
        return max(operations / self.flops, traffic / self.memory) / self.reached


# The card of the P3 paper (section 5). NVIDIA's data sheet: 5.3 TFLOP/s, 243 GB/s.
P4000 = Device("Quadro P4000, 80 % of its 5.3 TFLOP/s and 243 GB/s", 5.3e12, 243e9, 0.8)


def layers_of(
    network: mx.gluon.HybridBlock, inputs: Dict[str, Shape], device: Device
) -> List[Layer]:
    """The layers of a network for a batch of these shapes, in the order of the forward pass.

    Raises
    ------
    TraceError
        Where the network is no HybridBlock that makes a graph of these inputs.
    """
    variables = [mx.sym.var(name) for name in inputs]
    try:
        outputs = network(*variables)
        graph = mx.sym.Group(outputs) if isinstance(outputs, (list, tuple)) else outputs
        nodes = list(_nodes(graph, inputs))
    except (mx.base.MXNetError, TypeError, ValueError, AttributeError) as error:
        raise TraceError(f"{network.name} makes no graph of {inputs}: {error}") from error
    trained = {
        name for name, value in network.collect_params().items() if value.grad_req != "null"
    }
    layers: List[Layer] = []
    seen: set = set()
    for node in nodes:
        own = {name: prod(shape) for name, shape in node.arguments.items()
               if name in trained and name not in seen}
        seen.update(own)
        seconds = device.seconds(node.operations, node.traffic)
        if own or not layers:
            layers.append(Layer(own, seconds, _BACKWARD * seconds))
        else:
            last = layers[-1]
            layers[-1] = Layer(
                last.parameters, last.forward + seconds, last.backward + _BACKWARD * seconds
            )
    return layers


@dataclass(frozen=True)
class _Node:
    """An operation of a graph."""

    arguments: Dict[str, Shape]  # those of the graph that it reads itself
    operations: float
    traffic: float


def _nodes(graph: Any, inputs: Dict[str, Shape]) -> Iterator[_Node]:
    internals = graph.get_internals()
    _, shapes, _ = internals.infer_shape(**inputs)
    if shapes is None:
        raise ValueError("its shapes do not follow from the inputs'")
    shape_of = dict(zip(internals.list_outputs(), shapes))
    described = json.loads(graph.tojson())["nodes"]
    for described_node in described:
        kind, attributes = described_node["op"], described_node.get("attrs", {})
        if kind == "null":
            continue
        sources = [described[entry[0]] for entry in described_node["inputs"]]
        outputs = [entry[1] for entry in described_node["inputs"]]
        operands = [_shape(shape_of, source, output) for source, output in zip(sources, outputs)]
        result = _shape(shape_of, described_node, 0)
        read = {source["name"]: shape for source, shape in zip(sources, operands)
                if source["op"] == "null" and source["name"] not in inputs}
        moved = 0 if kind in _FREE else sum(map(prod, operands)) + prod(result)
        operations = _operations(kind, attributes, operands, result)
        if kind in ("RNN", "_foreach"):
            weights = operands[1:2] if kind == "RNN" else [read[name] for name in read]
            operations, again = _recurrence(operands[0], weights, operands)
            moved += again
        yield _Node(read, operations, _FLOAT_BYTES * moved)


def _recurrence(
    data: Shape, weights: Sequence[Shape], operands: Sequence[Shape]
) -> Tuple[float, float]:
    """Operations and elements read again of a layer that multiplies by its weights at each step.

    What it attends to, (batch, length, units), is multiplied at each step as well.
    """
    steps, batch, *_ = data
    elements = sum(map(prod, weights))
    attended = sum(prod(shape) for shape in operands[1:] if len(shape) == 3 and shape[0] == batch)
    return 2.0 * steps * (batch * elements + attended), float((steps - 1) * (elements + attended))


def _shape(shapes: Dict[str, Shape], node: Dict[str, Any], output: int) -> Shape:
    """Of a node's output, whose name MXNet makes of the node's."""
    name = node["name"]
    candidates = [name] if node["op"] == "null" else [f"{name}_output", f"{name}_output{output}"]
    for candidate in candidates:
        if candidate in shapes:
            return shapes[candidate]
    return ()


def _operations(
    kind: str, attributes: Dict[str, str], operands: Sequence[Shape], result: Shape
) -> float:
    """Of the forward pass; a product and a sum are two."""
    if kind == "Convolution":
        weight = operands[1]  # (channels out, channels in / groups, height, width)
        return 2.0 * prod(result) * prod(weight[1:])
    if kind == "FullyConnected":
        return 2.0 * prod(result) * operands[1][-1]
    if kind in ("batch_dot", "dot"):
        transposed = attributes.get("transpose_a", "False") in ("True", "1")
        return 2.0 * prod(result) * operands[0][-2 if transposed else -1]
    return 0.0
