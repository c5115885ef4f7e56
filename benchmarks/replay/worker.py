"""A worker of the replay: a network's layers as timed waits, and gradients as large as its own.

These are random numbers, drawn once, others on each host: what travels, and how much of it, depends
on no value but with compression, whose ratios with a network's own gradients are others.

The forward pass of a layer waits and reads its weights; the backward pass waits and writes its
gradients, last layer first. So communication hides exactly where it could behind a GPU.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import mxnet as mx

from benchmarks.replay.exchanges import HorovodExchange, StoreExchange
from benchmarks.replay.meters import Meters
from benchmarks.replay.trace import Layer, load
from benchmarks.replay.traffic import Sampler, between, mark
from benchmarks.replay.waits import Arrival, Device, Wait


class _ReplayedLayer:
    """A layer's arrays and waits. The key of a parameter is its place in an order."""

    def __init__(
        self, layer: Layer, keys: Dict[str, int], device: Device, keeps_gradients: bool
    ) -> None:
        sizes = layer.parameters
        self.weights = [mx.nd.zeros((size,)) for size in sizes.values()]
        self.gradients = [mx.nd.random.normal(scale=0.01, shape=(size,)) for size in sizes.values()]
        self.sums = [
            mx.nd.zeros_like(gradient) if keeps_gradients else gradient
            for gradient in self.gradients
        ]
        self.keys = [keys[name] for name in sizes]
        self.arrival = Arrival()
        self.forward = Wait(device, layer.forward, self.arrival)
        self.backward = Wait(device, layer.backward)
        # That the weights have come, and what a pass has got to, as an activation and its gradient.
        self.arrived, self.output, self.input_gradient = (mx.nd.zeros((1,)) for _ in range(3))


def work(settings: str, result: str) -> None:
    """Runs the iterations and writes seconds and bytes of each as JSON; see `job.py`. At least one
    of them counts."""
    how = json.loads(settings)
    trace = load(how["trace"]).scaled(how["dilation"] if how["computes"] else 0)
    names = [name for layer in trace.layers for name in layer.parameters]
    keys = {name: key for key, name in enumerate(sorted(names) if how["by_name"] else names)}
    exchange = (
        HorovodExchange()
        if how["store"] == "horovod"
        else StoreExchange(
            how["store"], how["compression"], how["updates"], how["apart"], how["momentum"],
            how["computes"],
        )
    )
    device = Device()
    mx.random.seed(how["host"])  # its process is a fork, as those of the other hosts
    layers = [
        _ReplayedLayer(layer, keys, device, how["keeps_gradients"]) for layer in trace.layers
    ]
    parameters = sorted(
        (key, *arrays)
        for layer in layers
        for key, *arrays in zip(layer.keys, layer.weights, layer.gradients, layer.sums)
    )
    for key, weight, *_ in parameters:
        exchange.begin(key, weight)
    if how["snapshots"]:
        exchange.begin_snapshots()
    _note_arrivals(layers)
    mx.nd.waitall()
    samples = how["sample"] and how["host"] == 0
    sampler = Sampler(how["sample"], how["dilation"]) if samples else None
    marks = [mark()]
    for iteration in range(how["warm_up"] + how["iterations"]):
        if iteration == how["warm_up"]:
            meters = Meters.now()
        last = _compute(layers)
        for parameter in parameters:
            exchange.step(*parameter)
        if how["snapshots"]:
            exchange.snapshot(Path(result).parent / "snapshots", how["snapshots"])
        _note_arrivals(layers)
        # As a script that reads the loss: it waits for the backward pass, not for communication.
        last.wait_to_read()
        marks.append(mark())
    metered = Meters.now().since(meters)
    traffic = sampler.rates(marks[how["warm_up"]][0]) if sampler else None
    mx.nd.waitall()
    seconds, sent, received = between(marks)
    found: Dict[str, Any] = {
        "rank": exchange.rank, "seconds": seconds, "sent": sent, "received": received,
        "traffic": traffic, **metered,
    }
    Path(result).write_text(json.dumps(found))


def _note_arrivals(layers: List[_ReplayedLayer]) -> None:
    """Handed over long before the next forward pass is, so that each notes the very moment."""
    for layer in layers:
        layer.arrival.push(layer.weights, [layer.arrived])


def _compute(layers: List[_ReplayedLayer]) -> mx.nd.NDArray:
    """Hands an iteration to the engine; returns what is written last."""
    above: List[mx.nd.NDArray] = []
    for layer in layers:
        layer.forward.push([*layer.weights, layer.arrived, *above], [layer.output])
        above = [layer.output]
    above = []
    for layer in layers[::-1]:
        reads = [*layer.weights, layer.output, *above]
        layer.backward.push(reads, [*layer.gradients, layer.input_gradient])
        above = [layer.input_gradient]
    return layers[0].input_gradient

