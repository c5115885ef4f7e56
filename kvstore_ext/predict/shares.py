"""How far the shares that TCP's connections get of a wire lie apart, and for how long."""
from __future__ import annotations

from math import exp
from statistics import NormalDist

from .placement import mix

HELD = 10.0  # seconds; a guess, and longer than most bursts on slow links

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
        self._since, self._until, self._factor = 0.0, 0.0, 1.0

    def at(self, now: float) -> float:
        """By how much what it has under way differs from others', at a time in seconds."""
        if not self._since <= now < self._until:
            number = int(now / HELD + self._turns)
            self._since, self._until = now, (number + 1 - self._turns) * HELD
            deviate = _NORMAL.inv_cdf((mix(self._seed ^ number) + 0.5) / 2**64)
            self._factor = exp(self._deviation * deviate)
        return self._factor
