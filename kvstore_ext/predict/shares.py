"""How far the shares that TCP's connections get of a wire lie apart, and for how long."""
from __future__ import annotations

from math import exp
from statistics import NormalDist

from .placement import mix

HELD = 10.0  # seconds for which BBR keeps the shortest round trip that its window follows from

_NORMAL = NormalDist()


class Share:
    """A connection's, by the bytes that it has under way; the same in every run.

    Parameters
    ----------
    deviation : float
        Of the logarithms of shares.
    *connection : int
        What tells it from others.
    """

    def __init__(self, deviation: float, *connection: int) -> None:
        self._deviation = deviation
        self._seed = 0
        for each in connection:
            self._seed = mix(self._seed ^ each)
        self._turns = self._seed % 1009 / 1009  # not all change at a time
        self._number, self._factor = -1, 1.0

    def at(self, now: float) -> float:
        """By how much what it has under way differs from others', at a time in seconds."""
        number = int(now / HELD + self._turns)
        if number != self._number:
            self._number = number
            value = mix(self._seed ^ number)
            self._factor = exp(self._deviation * _NORMAL.inv_cdf((value + 0.5) / 2**64))
        return self._factor
