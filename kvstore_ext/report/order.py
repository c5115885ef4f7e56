"""In which order keys travel, and in which the forward pass needs them."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Set

import numpy as np

from ..trace.events import Kind
from ..trace.reading import JobTrace, ProcessTrace
from .layers import layers_of_keys


@dataclass(frozen=True)
class Place:
    """A key's place in both orders, which begin with 1; `needed` is 0 where it is not known."""

    key: int
    name: str
    layer: str
    bytes: int
    sent: int
    needed: int


@dataclass(frozen=True)
class Order:
    """The keys in the order in which they travel.

    Attributes
    ----------
    places
        Of all keys that were pushed.
    agreeing
        Share of pairs of layers that travel in the order in which they are needed; nan without
        layers.
    """

    places: List[Place]
    agreeing: float


def order_of(job: JobTrace) -> Order:
    """As of the last round that the first worker with gradients has recorded."""
    worker = next((each for each in job.workers if len(each.gradients())), None)
    if worker is None:
        return Order([], float("nan"))
    pushes = worker.gradients()
    ended = worker.exchanges
    priorities = {int(row["key"]): int(row["priority"]) for row in np.append(pushes, ended)}
    sizes = {int(row["key"]): int(size) for row, size in zip(pushes, job.plain_bytes(pushes))}
    ready = {int(row["key"]): int(row["end"]) for row in pushes}
    layers = layers_of_keys(job)
    passes = _places_of_layers(worker, set(layers.values()))
    # Keys of one priority leave in the order in which their gradients are ready.
    keys = sorted(sizes, key=lambda key: (-priorities[key], ready[key]))
    needed = _needed(keys, layers, passes)
    places = [
        Place(key, job.name_of(key), layers.get(key, ""), sizes[key], number, needed.get(key, 0))
        for number, key in enumerate(keys, 1)
    ]
    return Order(places, _agreeing([passes[layers[key]] for key in keys if needed.get(key)]))


def _places_of_layers(worker: ProcessTrace, layers: Set[str]) -> Dict[str, float]:
    """Where each layer that has keys stands among those of a forward pass, in the median."""
    having_keys = [number for number, layer in enumerate(worker.layers) if layer in layers]
    forward = worker.of_kind(Kind.FORWARD)
    forward = forward[np.isin(forward["key"], having_keys)]
    if not len(forward):
        return {}
    forward = forward[np.argsort(forward["end"], kind="stable")]
    # A pass begins with the layer that was seen first.
    starts = np.flatnonzero(forward["key"] == _first_layer(worker, forward))
    if not len(starts):
        return {}
    passes = np.searchsorted(starts, np.arange(len(forward)), side="right") - 1
    within = np.arange(len(forward)) - starts[np.maximum(passes, 0)]
    found = {}
    for number in having_keys:
        here = (forward["key"] == number) & (passes >= 0)
        if here.any():
            found[worker.layers[number]] = float(np.median(within[here]))
    return found


def _first_layer(worker: ProcessTrace, forward: np.ndarray) -> int:
    """The layer that mostly follows a backward pass, or the first of all."""
    backward = worker.of_kind(Kind.BACKWARD)
    ends = np.sort(backward["end"])
    if not len(ends):
        return int(forward["key"][0])
    passed = np.searchsorted(ends, forward["end"])
    follows = np.append(True, passed[1:] > passed[:-1])
    layers, counts = np.unique(forward["key"][follows], return_counts=True)
    return int(layers[np.argmax(counts)])


def _needed(
    keys: List[int], layers: Dict[int, str], passes: Dict[str, float]
) -> Dict[int, int]:
    known = [key for key in keys if layers.get(key) in passes]
    ordered = sorted(known, key=lambda key: passes[layers[key]])
    return {key: number for number, key in enumerate(ordered, 1)}


def _agreeing(places: List[float]) -> float:
    """Share of pairs that stand in order, of those that differ."""
    values = np.array(places)
    agree = differ = 0
    for place, value in enumerate(values):
        later = values[place + 1 :]
        agree += int(np.count_nonzero(later > value))
        differ += int(np.count_nonzero(later != value))
    return agree / differ if differ else float("nan")
