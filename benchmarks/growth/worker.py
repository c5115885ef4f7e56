"""A worker of a job with a model of next to no bytes: what is left is what hosts cost."""
from __future__ import annotations

import json
import os
import time
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, List

import mxnet as mx

from benchmarks.growth import processes
from benchmarks.replay.exchanges import StoreExchange

KEYS, ELEMENTS = 20, 1000
_WARM_UP, _STEPS, _BARRIERS = 5, 40, 10
_IDLE = 3.0  # seconds in which nothing is done but giving signs of life


def work(settings: str, result: str) -> None:
    """Opens a store, trains without computing, idles, and writes what that took as JSON."""
    how = json.loads(settings)
    begun = time.monotonic()
    exchange = StoreExchange(
        how["store"], how["compression"], how["updates"], how["apart"], how["momentum"]
    )
    opened = time.monotonic()
    # A weight, a gradient, and the place of sums: in the gradient's they would grow without limit.
    keys = [[mx.nd.full((ELEMENTS,), value) for value in (0, 1, 0)] for _ in range(KEYS)]
    for key, (weight, *_) in enumerate(keys):
        exchange.begin(key, weight)
    mx.nd.waitall()
    initial = time.monotonic() - opened

    def step() -> None:
        for key, arrays in enumerate(keys):
            exchange.step(key, *arrays)
        mx.nd.waitall()

    own = os.getpid()
    servers, others = processes.beside(own)
    observed = {"worker": own, "server": servers[0], **dict(zip(["scheduler"], others))}
    # To read the others takes the worker's own time, which is not to count: it is read last before
    # what is measured, and first after it.
    others_first = dict(reversed(list(observed.items())))
    _times(step, _WARM_UP)
    exchange.barrier()
    before = _state(others_first)
    steps = _times(step, _STEPS)
    after_steps = _state(observed)
    exchange.barrier()
    before_idling = _state(others_first)
    time.sleep(_IDLE)
    after_idling = _state(observed)
    found: Dict[str, Any] = {
        "rank": exchange.rank, "begun": begun, "opened": opened, "initial": initial,
        "step": median(steps), "barrier": median(_times(exchange.barrier, _BARRIERS)),
        "connections": processes.connections(),
        "packets": (after_steps["packets"] - before["packets"]) / _STEPS,
        "idle_packets": (after_idling["packets"] - before_idling["packets"]) / _IDLE,
    }
    for role in observed:
        now = after_idling[role]
        found[role] = {
            **now,
            "a_step": (after_steps[role]["processor"] - before[role]["processor"]) / _STEPS,
            "idle": (now["processor"] - before_idling[role]["processor"]) / _IDLE,
        }
    exchange.barrier()  # nobody leaves while another one still looks
    Path(result).write_text(json.dumps(found))


def _state(observed: Dict[str, int]) -> Dict[str, Any]:
    states = {role: processes.figures(process) for role, process in observed.items()}
    return {**states, "packets": processes.packets()}


def _times(action: Callable[[], None], count: int) -> List[float]:
    times = []
    for _ in range(count):
        begun = time.monotonic()
        action()
        times.append(time.monotonic() - begun)
    return times
