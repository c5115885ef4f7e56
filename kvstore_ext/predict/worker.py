"""A worker's computing: forward passes wait for parameters, backward passes give gradients."""
from __future__ import annotations

from typing import Callable, List, Protocol, Sequence

from .events import Events
from .network import Layer


class Exchange(Protocol):
    """How gradients become parameters: a store."""

    def ready(self, worker: Worker, key: int) -> None:
        """A worker has a key's gradient. `Worker.arrived` is called when it has come back."""


class Worker:
    """One that computes a network's layers, or several that are alike and stand as one.

    Parameters
    ----------
    events : Events
    layers : sequence of Layer
        In the order of the forward pass.
    keys : sequence of list of int
        The numbers of each layer's keys.
    iterations : int
        After which it ends.
    count : int
        Workers that it stands for.
    factor : float
        How many times as long as the layers say it computes.

    Attributes
    ----------
    marks : list of float
        When the backward pass of each iteration ended.
    at_mark : callable
        Called at each of them.
    compute : float
        Seconds of an iteration without communication.
    """

    def __init__(
        self,
        events: Events,
        layers: Sequence[Layer],
        keys: Sequence[List[int]],
        iterations: int,
        count: int = 1,
        factor: float = 1.0,
    ) -> None:
        self.events, self.count = events, count
        self.marks: List[float] = []
        self.at_mark: Callable[[], None] = lambda: None
        self._forward = [layer.forward * factor for layer in layers]
        self._backward = [layer.backward * factor for layer in layers]
        self.compute = sum(self._forward) + sum(self._backward)
        self._keys = keys
        self._layer_of = {key: layer for layer, own in enumerate(keys) for key in own}
        self._missing = [0] * len(layers)  # keys that have not come back, by layer
        self._waits = -1  # the layer that the forward pass has come to, where it cannot go on
        self._iterations = iterations
        self.exchange: Exchange

    def begin(self, exchange: Exchange) -> None:
        """Begins its first iteration, with all parameters there."""
        self.exchange = exchange
        self._go_forward(0)

    def arrived(self, key: int) -> None:
        """A key's parameters, or its gradients' sum, have come."""
        layer = self._layer_of[key]
        self._missing[layer] -= 1
        if layer == self._waits and not self._missing[layer]:
            self._waits = -1
            self._go_forward(layer)

    def _go_forward(self, layer: int) -> None:
        if self._missing[layer]:
            self._waits = layer
            return
        last = layer + 1 == len(self._forward)
        then = (self._go_back, layer) if last else (self._go_forward, layer + 1)
        self.events.at(self.events.now + self._forward[layer], *then)

    def _go_back(self, layer: int) -> None:
        self.events.at(self.events.now + self._backward[layer], self._has_gradients, layer)

    def _has_gradients(self, layer: int) -> None:
        own = self._keys[layer]
        self._missing[layer] = len(own)
        for key in own:
            self.exchange.ready(self, key)
        if layer:
            self._go_back(layer - 1)
            return
        self.marks.append(self.events.now)
        self.at_mark()
        if len(self.marks) < self._iterations:
            self._go_forward(0)
