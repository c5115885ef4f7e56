"""How much of the communication goes on while the worker computes."""
from __future__ import annotations

import numpy as np

from ..trace.events import Kind
from ..trace.reading import ProcessTrace
from .iteration import Iteration
from .moments import MISSING
from .spans import common, union

_SLACK = 200_000  # nanoseconds


def overlap_of(worker: ProcessTrace, iteration: Iteration) -> float:
    """Share of the time with an exchange under way in which the worker did not wait.

    An exchange is under way from when a gradient is there until its result is written. Without
    layers this is the most that the share can be. nan without an exchange in the steps that count.
    """
    done = worker.exchanges
    exchanges = union(done["begin"], done["end"])
    exchanging = common(exchanges, iteration.steps.spans)
    if not exchanging:
        return float("nan")
    waits = union(iteration.waits["begin"], iteration.waits["end"])  # which all lie in steps
    # A wait may begin microseconds before its step does.
    return max(0.0, 1 - common(exchanges, waits) / exchanging)


def late_gradients(worker: ProcessTrace) -> float:
    """Share of gradients that the script pushed after their step's backward pass had ended; nan
    where layers or steps were not recorded, or no pass takes long enough to tell."""
    passes = worker.of_kind(Kind.BACKWARD)
    backward = np.sort(passes["end"])
    ready = worker.gradients()
    recorded = worker.of_kind(Kind.STEP)
    if not len(backward) or not len(ready) or not len(recorded):
        return float("nan")
    begins = np.append(np.sort(recorded["begin"]), recorded["end"].max())
    # The key that begins a step need not be the first that the script pushes in it.
    steps = np.searchsorted(begins, ready["end"] + _SLACK, side="right")
    last_ready = np.full(len(begins) + 1, MISSING)
    np.maximum.at(last_ready, steps, ready["end"])
    # The last layer of a pass may be noted a little after its gradient was taken up.
    place = np.searchsorted(backward, last_ready + _SLACK, side="right") - 1
    ended = backward[np.maximum(place, 0)]
    # A step begins with its first push, which may come after the whole pass.
    bounds = np.maximum.accumulate(ended)
    begun = np.full(len(bounds) + 1, np.iinfo(np.int64).max)
    np.minimum.at(begun, np.searchsorted(bounds, passes["end"], side="left"), passes["begin"])
    tells = begun[steps] < ended[steps] - 2 * _SLACK
    if not tells.any():
        return float("nan")
    return float(np.mean(ready["begin"][tells] >= ended[steps][tells] - _SLACK))
