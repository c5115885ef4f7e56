"""How far the shares that TCP's connections get of a wire lie apart, and for how long."""
from __future__ import annotations

from math import exp, log, sqrt
from statistics import NormalDist
from typing import Sequence

from .placement import mix

HELD = 10.0  # seconds for which BBR keeps the shortest round trip that its window follows from

_NORMAL = NormalDist()


# Bytes a second. BBR's window follows from the rate that a connection has had: a millisecond's
# worth, three times, but not of more than 64 KiB. So from the latter rate on windows are alike, and
# that they differ most up to the former one is measured (`python -m benchmarks.prediction.bursts`).
_UNLIKE_TO, _ALIKE_FROM = 12.5e6, 65536 / 0.976e-3


class Share:
    """A connection's, by the bytes that it has under way; the same in every run.

    Parameters
    ----------
    deviation : float
        Of the logarithms of shares, at low rates.
    *connection : int
        What tells it from others.
    of_hosts : float
        The part of their variance that all connections of the sending host have in common.
    host : sequence of int
        What tells that host from others.
    """

    def __init__(
        self, deviation: float, *connection: int, of_hosts: float = 0.0, host: Sequence[int] = ()
    ) -> None:
        self._own, self._hosts = _Deviate(connection), _Deviate(host)
        self._by_own = deviation * sqrt(1 - of_hosts)
        self._by_host = deviation * sqrt(of_hosts)
        self._since, self._until, self._rate, self._factor = 0.0, 0.0, -1.0, 1.0

    def at(self, now: float, rate: float = 0.0) -> float:
        """By how much what it has under way differs from others', at a time in seconds, where each
        would have so many bytes a second."""
        if rate != self._rate or not self._since <= now < self._until:
            own, host = self._own.at(now), self._hosts.at(now)
            self._since, self._until = now, min(self._own.until, self._hosts.until)
            self._rate = rate
            unlike = log(_ALIKE_FROM / max(rate, _UNLIKE_TO)) / log(_ALIKE_FROM / _UNLIKE_TO)
            self._factor = exp(max(0.0, unlike) * (self._by_own * own + self._by_host * host))
        return self._factor


class _Deviate:
    """Normally distributed numbers, each of which holds for a while: the last one `until` then."""

    def __init__(self, of: Sequence[int]) -> None:
        self._seed = 0
        for each in of:
            self._seed = mix(self._seed ^ each)
        self._turns = self._seed % 1009 / 1009  # not all change at a time
        self.until = 0.0

    def at(self, now: float) -> float:
        """The one of a time in seconds."""
        number = int(now / HELD + self._turns)
        self.until = (number + 1 - self._turns) * HELD
        return _NORMAL.inv_cdf((mix(self._seed ^ number) + 0.5) / 2**64)
