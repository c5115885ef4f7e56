"""What limits an iteration, in a word."""
from __future__ import annotations

from .simulation import Prediction

_COMPUTES = 0.98  # of linear: nothing else is worth naming
_UNEVEN = 1.2  # times as busy as the mean: one server holds all up
_BUSY = 0.7  # of the time


def limit(found: Prediction) -> str:
    """compute, wire, server, host's processor or waiting.

    "server" is one whose wire or processors, of which the busier count, are much busier than the
    workers' are in the mean; "waiting" that nothing is busy all the time, as where layers'
    gradients come too late to be hidden, or messages are many and far apart.
    """
    if found.share_of_linear >= _COMPUTES:
        return "compute"
    name, mean, of_a_server = max(
        ("wire", found.wire, found.server_wire),
        ("host's processor", found.processors, found.server_processors),
        key=lambda one: max(one[1:]),
    )
    if max(mean, of_a_server) < _BUSY:
        return "waiting"
    return "server" if of_a_server > _UNEVEN * mean else name
