"""How fast this host's processor encodes, adds up and decodes: the core's codecs, timed."""
from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Callable, Dict

import numpy as np

from .codecs import SENT_BY_DGC, SLIM_ALL, SLIM_CORE
from .speeds import Speeds

_ELEMENTS = 50_000  # a slice of the lane's; few enough to lie in a cache, as when they have come
_REPEATS = 21
_WORKERS = 4

SPECIFICATIONS = {
    "terngrad": "terngrad clip_sigma=2.5 scaler_sharing=1 seed=0",
    "qsgd": "qsgd bits=8 bucket=512 norm=l2 seed=0 error_feedback=0",
    "onebit": "onebit bucket=512 error_feedback=0",
    "signsgd": "signsgd scale=1 seed=0",
    "fp16": "fp16 error_feedback=0",
    "2bit": "2bit threshold=0.5",
}
_CARRIED_OVER = ("onebit", "2bit")  # by default; a Codec alone carries nothing over


def measure(core: Any) -> Speeds:
    """The speeds of this host, by kvstore_ext's compiled core.

    Parameters
    ----------
    core : module
        `kvstore_ext._core`.

    Returns
    -------
    Speeds
        Of the codecs in SPECIFICATIONS, and of additions and updates; others have their defaults.
        What `dgc` and `slim_dp` do is put together of their own loops and of others that go
        through as many numbers: about as long as they take.
    """
    values = np.random.default_rng(0).standard_normal(_ELEMENTS).astype(np.float32)
    draws = core.Draws(0, 0, 0, 1)
    codecs = {name: _codec(core, text, values, draws) for name, text in SPECIFICATIONS.items()}
    total = np.zeros_like(values)
    add = _seconds(lambda: np.add(total, values, out=total))
    for name in _CARRIED_OVER:
        codecs[name] = carrying_over(codecs[name], add)
    codecs["dgc"] = _dgc(core, values, add)
    codecs["slim_dp"] = _slim_dp(core, values, add)
    return replace(Speeds(), codecs=codecs, add=add, update=2 * add)


def _codec(core: Any, text: str, values: np.ndarray, draws: Any) -> Dict[str, float]:
    """Seconds of an element."""
    codec = core.Codec(text, _WORKERS)
    scaler = codec.scaler(values)
    encoded = codec.encode(values, scaler, draws)
    total = np.zeros_like(values)
    for _ in range(_WORKERS):
        codec.add_to(total, encoded)
    found = {
        "encode": _seconds(lambda: (codec.scaler(values), codec.encode(values, scaler, draws))),
        "add": _seconds(lambda: codec.add_to(np.zeros_like(values), encoded)),
    }
    summed = codec.encode_sum(total, scaler, draws)
    if summed:
        found["encode_sum"] = _seconds(lambda: codec.encode_sum(total, scaler, draws))
        found["decode"] = _seconds(lambda: codec.decode_sum(values.size, summed))
    return found


def carrying_over(codec: Dict[str, float], add: float) -> Dict[str, float]:
    """A codec's seconds with what error feedback takes beside.

    Parameters
    ----------
    codec : dict
        Its seconds of an element without, by what it does.
    add : float
        Seconds of an addition.

    Returns
    -------
    dict
        The same, where workers add what they carry over, decode what they send, and take that
        away (csrc/codecs/key_encoder.cc); and servers likewise, of sums that lose something
        (csrc/server/coded_sum.cc).
    """
    found = {**codec, "encode": codec["encode"] + 3 * add + codec["add"]}
    if "encode_sum" in codec:
        found["encode_sum"] = codec["encode_sum"] + 2 * add + codec["decode"]
    return found


def _dgc(core: Any, values: np.ndarray, add: float) -> Dict[str, float]:
    """A worker's momentum and what it carries over, and the few that it selects; a sum that most
    elements have no part in."""
    selecting = _seconds(lambda: core.select_largest(values, int(SENT_BY_DGC * values.size)))
    return {
        "encode": 3 * add + selecting,
        "add": SENT_BY_DGC * add,
        "encode_sum": add,
        "decode": add,
    }


def _slim_dp(core: Any, values: np.ndarray, add: float) -> Dict[str, float]:
    """Explorers are drawn at both ends. A server takes out each worker's answer, counts who has
    pushed what, and updates; a worker trains, and keeps a copy of what it has merged."""
    members = np.random.default_rng(0).permutation(values.size)
    in_core, explored = (int(share * values.size) for share in (SLIM_CORE, SLIM_ALL - SLIM_CORE))
    chosen = core.Subset(values.size, [int(member) for member in members[:in_core]])
    together = chosen.explore(explored, 0)
    drawing = _seconds(lambda: chosen.explore(explored, 0))
    taking = _seconds(lambda: together.take_out(values))
    return {
        "encode": (2 * add + drawing + taking) / SLIM_ALL,
        "add": (drawing + 2 * taking) / SLIM_ALL,
        "encode_sum": 2 * add,
        "decode": (add + taking) / SLIM_ALL,
    }


def _seconds(step: Callable[[], object]) -> float:
    """The shortest of several times, for an element."""
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return min(times) / _ELEMENTS
