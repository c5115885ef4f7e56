"""How far the shares that TCP's connections get of a wire lie apart, for a while."""
from __future__ import annotations

from math import exp
from statistics import NormalDist
from typing import List

from .placement import mix
from .wires import SEGMENT

_NORMAL = NormalDist()
_TURNS = 1009  # after which it is as at the beginning


def segments(deviation: float, *connection: int) -> List[int]:
    """Bytes that a connection sends in each of its turns, the same in every run.

    Parameters
    ----------
    deviation : float
        Of the logarithms of shares.
    *connection : int
        What tells it from others.

    Returns
    -------
    list of int
        Of the first 1009 turns; then it begins again.
    """
    found = []
    for number in range(_TURNS):
        value = 0
        for each in (*connection, number):
            value = mix(value ^ each)
        share = exp(deviation * _NORMAL.inv_cdf((value + 0.5) / 2**64))
        found.append(max(2000, int(SEGMENT * share)))
    return found
