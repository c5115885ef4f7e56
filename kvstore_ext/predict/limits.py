"""What limits an iteration, in a word."""
from __future__ import annotations

from .simulation import Prediction

_COMPUTES = 0.98  # of linear: nothing else is worth naming
_UNEVEN = 1.2  # times as busy as the mean: one server holds all up


def limit(found: Prediction) -> str:
    """compute, wire, server, host's processor or waiting.

    "server" is one whose wire or processors are much busier than the others', or busier than
    anything else; "waiting" that nothing is busy all the time, as where layers' gradients come too
    late to be hidden, or messages are many and far apart.
    """
    if found.share_of_linear >= _COMPUTES:
        return "compute"
    busiest = max(found.wire, found.server_wire, found.processors, found.server_processors)
    if busiest < 0.7:
        return "waiting"
    if found.server_processors == busiest or found.server_wire > _UNEVEN * found.wire:
        return "server"
    if found.processors == busiest:
        return "host's processor"
    return "wire"
