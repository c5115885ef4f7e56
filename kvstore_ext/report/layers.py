"""Which keys a layer needs: by their names, or by when their gradients are ready.

Gluon calls the parameters of the operator "conv0_fwd" "conv0_weight" and "conv0_bias"; with Module
the operator is "conv0", and keys are named as parameters are. Where names do not tell, it is the
operator whose backward pass has ended last when a key's gradient is ready.
"""
from __future__ import annotations

import re
from collections import Counter
from typing import Dict, Iterable, List, Optional

import numpy as np

from ..trace.events import Kind
from ..trace.reading import JobTrace, ProcessTrace

_OPERATOR = "_fwd"
_SLACK = 200_000  # nanoseconds by which a gradient may seem to be ready before its layer's end


def layers_of_keys(job: JobTrace) -> Dict[int, str]:
    """The layer of each key, by its identity; of none where layers were not recorded."""
    votes: Dict[int, Counter] = {}
    for worker in job.workers:
        _vote(worker, votes)
    found = {key: counted.most_common(1)[0][0] for key, counted in votes.items()}
    layers = {layer for worker in job.workers for layer in worker.layers}
    for key, info in job.keys.items():
        named = _named(info.name, layers)
        if named is not None:
            found[key] = named
    return found


def keys_of_layers(job: JobTrace) -> Dict[str, List[int]]:
    """The keys of each layer that has any."""
    found: Dict[str, List[int]] = {}
    for key, layer in layers_of_keys(job).items():
        found.setdefault(layer, []).append(key)
    return found


def stem_of(layer: str) -> str:
    """What the names of its parameters begin with."""
    return layer[: -len(_OPERATOR)] if layer.endswith(_OPERATOR) else layer


def _named(name: str, layers: Iterable[str]) -> Optional[str]:
    """The layer of a key such as "3 (conv1_weight)" or "'conv1_weight'"; None where its name tells
    none."""
    told = re.search(r"\((.+)\)$", name)
    parameter = (told[1] if told else name).strip("'")
    fitting = [layer for layer in layers if f"{parameter}_".startswith(f"{stem_of(layer)}_")]
    return max(fitting, key=lambda layer: len(stem_of(layer))) if fitting else None


def _vote(worker: ProcessTrace, votes: Dict[int, Counter]) -> None:
    """Counts, round by round, the layer that ended last before a key's gradient was ready."""
    passes = worker.passes(Kind.BACKWARD)
    ready = worker.gradients()
    # A gradient that was there when it was pushed tells nothing.
    ready = ready[ready["end"] - ready["begin"] > _SLACK]
    if not len(passes) or not len(ready):
        return
    passes = passes[np.argsort(passes["end"], kind="stable")]
    place = np.searchsorted(passes["end"], ready["end"] + _SLACK, side="right") - 1
    for key, layer in zip(ready["key"][place >= 0], passes["key"][place[place >= 0]]):
        votes.setdefault(int(key), Counter())[worker.layers[int(layer)]] += 1
