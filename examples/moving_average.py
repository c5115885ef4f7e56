"""The exponential moving average of a network's parameters, which --ema trains beside them."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator

from kvstore_ext.snapshots import Part


class MovingAverage(Part):
    """Follows a network's parameters, and stands in for them where they are evaluated.

    Section 4 of the TernGrad paper evaluates the average with a decay of 0.9999, after Chen et al.,
    "Revisiting distributed synchronous SGD" (2016). As TensorFlow has it, with which that paper
    trains, the decay is (1 + steps) / (10 + steps) while that is smaller, so that what the network
    began with is soon forgotten. Running statistics of batch normalisation are averaged like all
    else, but MXNet 1.9.1 writes them in the backward pass without its engine's knowledge: a step
    may take in those of the step before. The average lies on the first device, as float32.

    Parameters
    ----------
    net
        A HybridBlock whose parameters are initialised: the average begins with them.
    decay
        Weight of the average so far, in a step: above 0 and below 1.
    steps
        How many have been made, where the network has been trained before.
    """

    name = "moving average"

    def __init__(self, net: Any, decay: float, steps: int = 0) -> None:
        self._decay, self._steps = decay, steps
        self._parameters = list(net.collect_params().values())
        self._averages = [parameter.list_data()[0].astype("float32")
                          for parameter in self._parameters]

    def update(self) -> None:
        """Takes in what a step has made of the parameters, without waiting for it."""
        self._steps += 1
        weight = 1 - min(self._decay, (1 + self._steps) / (10 + self._steps))
        for average, parameter in zip(self._averages, self._parameters):
            newest = parameter.list_data()[0].astype("float32", copy=False)
            average += weight * (newest - average)

    def shared(self) -> dict[str, Any]:
        """What a snapshot of the store has of it: alike on all workers, but for the averages of
        running statistics, which each worker has of its own batches. Those are rank 0's."""
        return {"steps": self._steps, "averages": [each.asnumpy() for each in self._averages]}

    def put_back(self, shared: dict[str, Any], own: Any, is_own: bool) -> None:
        """Goes on from a snapshot."""
        self._steps = shared["steps"]
        for average, values in zip(self._averages, shared["averages"]):
            average[:] = values

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Has the network be the averaged one meanwhile."""
        # Not by Parameter.set_data, by which a trainer would begin anew with its store.
        held = [[array.copy() for array in parameter.list_data()] for parameter in self._parameters]
        self._put([[average] * len(arrays) for average, arrays in zip(self._averages, held)])
        try:
            yield
        finally:
            self._put(held)

    def _put(self, values: list[list[Any]]) -> None:
        for parameter, of_devices in zip(self._parameters, values):
            for array, value in zip(parameter.list_data(), of_devices):
                value.astype(array.dtype, copy=False).copyto(array)
