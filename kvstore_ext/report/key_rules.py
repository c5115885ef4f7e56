"""Advice on keys: one that all wait for, their order, their overlap with computing, compression."""
from __future__ import annotations

from typing import Optional

from . import words
from .advice import Advice, waits_enough
from .analysis import Analysis
from .overlap import late_gradients

_MOST = 0.5  # of all waiting
_LEAST_KEYS = 3
_HEAVY = 0.5  # of all bytes
_LATE = 0.9  # of all gradients
_IN_ORDER = 0.8  # of pairs of layers


def one_key(found: Analysis) -> Optional[Advice]:
    """Most of the waiting is for one key."""
    by_key = found.causes.by_key()
    if not waits_enough(found) or len(found.order.places) < _LEAST_KEYS or not by_key:
        return None
    key = max(by_key, key=lambda each: by_key[each])
    share = found.share_of_waiting(by_key[key])
    if share < _MOST:
        return None
    if not found.layers_known:
        return None  # the key of the first layer is the only one that is seen then
    sizes = {place.key: place.bytes for place in found.order.places}
    size = sizes.get(key, 0) / max(1, sum(sizes.values()))
    if size < _HEAVY:
        return None  # others held it up
    return Advice(
        f"{words.per_cent(share)} of all waiting is for key {found.key_name(key)}, which has "
        f"{words.per_cent(size)} of the bytes.",
        "While this one travels no order helps. Fewer bytes for it would, by compression, or a "
        "layer that is cut in two or smaller.",
        "layers",
    )


def late_pushes(found: Analysis) -> Optional[Advice]:
    """The script pushes gradients only once all are computed."""
    late = [late_gradients(worker) for worker in found.job.workers]
    known = [share for share in late if share == share]
    if not waits_enough(found) or not known or min(known) < _LATE:
        return None
    return Advice(
        f"{words.per_cent(min(known))} of the gradients were pushed after the whole backward pass "
        "had ended, and of the time with an exchange under way workers compute in "
        f"{words.per_cent(found.overlap)}.",
        "Look whether the script waits between backward() and step(), by asnumpy(), asscalar() "
        "or waitall(): gradients could travel while others are computed.",
        "time",
    )


def wrong_order(found: Analysis) -> Optional[Advice]:
    """Keys travel in another order than the forward pass needs them."""
    agreeing = found.order.agreeing
    if not waits_enough(found) or not agreeing < _IN_ORDER:
        return None
    return Advice(
        f"Only {words.per_cent(agreeing)} of the pairs of layers travel in the order in which the "
        "forward pass needs them.",
        "The store learns the order in the first steps in which gradients are still computed "
        "when they are pushed. Push in the script as soon as backward() returns, or give "
        "priorities.",
        "order",
    )


def costly_compression(found: Analysis) -> Optional[Advice]:
    """Compressing takes longer than the bytes that it saves would have."""
    for method in found.methods:
        saved = method.saved_seconds(found.links.gigabits)
        if not method.is_plain and method.cost > saved:
            carried = words.gigabits(found.links.gigabits)
            return Advice(
                f"{method.name} takes {words.seconds(method.cost)} of a worker's processor in a "
                f"step; at {carried} the bytes that it saves would take {words.seconds(saved)}.",
                "Without compression a step may well be shorter: try the store p3"
                + ("." if method.name.startswith("fp16") else ", or fp16."),
                "compression",
            )
    return None
