"""A network as the trace of a job shows it: kvstore-launch --trace."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Dict, List, Mapping, Sequence

import numpy as np

from ..report.layers import keys_of_layers
from ..trace.events import Kind
from ..trace.reading import JobTrace, KeyInfo, ProcessTrace
from .network import Layer, Network, NetworkError
from .progress import say

_LEAST_STEPS = 2
_IN_ROUNDS = "slim_dp"


def network_of(job: JobTrace, source: str, batch: int) -> Network:
    """Its layers, their parameters, and the time that its first worker took for them.

    A layer's event lasts from the end of the one before, what it waited for included. So its time
    is the median of the backward passes, which wait for nothing, and of the quicker half of the
    forward passes, from when its parameters were there: in a step, in which it may be called again
    and again, and on several devices.

    Parameters
    ----------
    job : JobTrace
    source : str
        The command that made it.
    batch : int
        Samples of a worker in an iteration, which a trace does not tell.

    Raises
    ------
    NetworkError
        Where the trace has no worker, no names of layers, or no step of training; or where what
        it has for a step may be several.
    """
    if not job.workers:
        raise NetworkError("the trace has no worker, only servers: layers are recorded on workers")
    if any(key.method.startswith(_IN_ROUNDS) for key in job.keys.values()):
        raise NetworkError(
            f"the trace is of {_IN_ROUNDS}, of which a round is p steps of training: trace the job "
            "with another compression, or with none"
        )
    if any(key.name.strip("'").startswith("ec_dnn ") for key in job.keys.values()):
        raise NetworkError(
            "the trace is of EC-DNN, which exchanges models every tau steps of training: trace a "
            "job of the same network that exchanges gradients"
        )
    halves = [key.name for key in job.keys.values() if key.dtype == "float16"]
    if halves:
        say(
            f"{len(halves)} keys are of float16: of these, what encodings send and cost is "
            "predicted as of half as many numbers, and so is too little"
        )
    worker = job.workers[0]
    recorded = worker.of_kind(Kind.STEP)
    steps = np.sort(recorded["begin"])
    if len(recorded):  # a step is recorded when the next one begins, and the last one never
        steps = np.append(steps, recorded["end"].max())
    keys = keys_of_layers(job)
    passes = {
        Kind.FORWARD: _by_layer(_without_waits(worker, keys), steps),
        Kind.BACKWARD: _by_layer(worker.passes(Kind.BACKWARD), steps),
    }
    order = _order(worker.passes(Kind.FORWARD))
    if not keys or not order:
        raise NetworkError(
            f"the trace of {worker.name} has no layers: they are recorded of networks of Gluon's "
            "blocks, and of Module's, and have their names once the worker has ended well"
        )
    # A frozen layer's keys only have first values.
    broadcast = {key for key, known in job.keys.items() if known.method == "broadcast"}
    pushed = {int(key) for key in worker.gradients()["key"]} - broadcast
    known = _told_apart(job.keys)
    layers: List[Layer] = []
    for number in order:
        forward = _quick(passes[Kind.FORWARD].get(number, []))
        backward = _middle(passes[Kind.BACKWARD].get(number, []))
        named = [known[key] for key in keys.get(worker.layers[number], []) if key in pushed]
        own = {key.name: _floats(key) for key in named}
        if own or not layers:
            layers.append(Layer(own, forward, backward))
        else:
            last = layers[-1]
            layers[-1] = Layer(last.parameters, last.forward + forward, last.backward + backward)
    _take_in_others(layers, [known[key] for key in sorted(pushed) if key in known])
    network = Network("the traced job", batch, f"host {worker.host}", source, layers)
    if not network.trains:
        raise NetworkError(
            f"the trace of {worker.name} has no layer with parameters that were trained: it takes "
            "a few steps of training"
        )
    return network


def _told_apart(keys: Mapping[int, KeyInfo]) -> Dict[int, KeyInfo]:
    """The same, where no two have one name: two stores may have keys that are called alike."""
    seen: Counter = Counter()
    found = {}
    for identity, key in keys.items():
        seen[key.name] += 1
        again = f" #{seen[key.name]}" if seen[key.name] > 1 else ""
        found[identity] = replace(key, name=key.name + again)
    return found


def _take_in_others(layers: List[Layer], pushed: List[KeyInfo]) -> None:
    """Has the first layer need what no layer was seen to: then nothing is sent sooner than it may
    be, nor left out."""
    known = {name for layer in layers for name in layer.parameters}
    others = [key for key in pushed if key.name not in known]
    if not others:
        return
    say(
        f"no layer was seen to need {len(others)} of {len(pushed)} keys, which count as the first "
        f"one's: {', '.join(key.name for key in others[:3])}{', ...' if len(others) > 3 else ''}"
    )
    first = layers[0]
    added = {key.name: _floats(key) for key in others}
    layers[0] = Layer({**first.parameters, **added}, first.forward, first.backward)


def _floats(key: KeyInfo) -> int:
    """The elements of float32 that take as many bytes."""
    return -(-key.elements * np.dtype(key.dtype).itemsize // np.dtype("float32").itemsize)


def _without_waits(worker: ProcessTrace, keys: Mapping[str, Sequence[int]]) -> np.ndarray:
    """Its layers' forward passes, each from when the last of its parameters was there."""
    events, done = worker.passes(Kind.FORWARD).copy(), worker.exchanges
    for number, layer in enumerate(worker.layers):
        if layer not in keys:
            continue
        here = events["key"] == number
        come = np.sort(done["end"][np.isin(done["key"], keys[layer])])
        come = np.append(0, come)[np.searchsorted(come, events["end"][here], side="right")]
        events["begin"][here] = np.maximum(events["begin"][here], come)
    return events


def _by_layer(events: np.ndarray, steps: np.ndarray) -> Dict[int, List[float]]:
    """Seconds of each layer in each step, by the steps' beginnings; each time that it was called,
    where these are unknown."""
    found: Dict[int, Dict[int, float]] = {}
    places = np.searchsorted(steps, events["begin"], side="right")
    for place, event in zip(places.tolist(), events):
        of_layer = found.setdefault(int(event["key"]), {})
        place = place if len(steps) else len(of_layer)
        seconds = (event["end"] - event["begin"]) * 1e-9
        of_layer[place] = of_layer.get(place, 0.0) + seconds
    return {number: list(of_layer.values()) for number, of_layer in found.items()}


def _order(forward: np.ndarray) -> List[int]:
    """The layers, as they are first seen."""
    return list(dict.fromkeys(int(key) for key in forward["key"]))


def _quick(seconds: List[float]) -> float:
    return float(np.percentile(seconds, 25)) if len(seconds) >= _LEAST_STEPS else sum(seconds)


def _middle(seconds: List[float]) -> float:
    return float(np.median(seconds)) if seconds else 0.0
