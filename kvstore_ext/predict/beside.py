"""What runs on one host shares it: a worker, and a server beside that.

Where hosts that are alike are simulated once, a worker and a server of the same host are simulated
apart. So each hears how long the other has kept busy what they share.
"""
from __future__ import annotations

from typing import Optional


class Load:
    """Seconds so far in which hosts of one kind are busy: of one host; of several, their mean."""

    def __init__(self) -> None:
        self.seconds = 0.0


class Beside:
    """What a host's wire or processors do for processes that are simulated apart.

    Parameters
    ----------
    own : Load, optional
        What is done here counts as the load of this kind of hosts.
    share : float
        Of them that this one stands for.
    others : Load, optional
        What is done here besides.
    """

    def __init__(
        self, own: Optional[Load] = None, share: float = 1.0, others: Optional[Load] = None
    ) -> None:
        self._own, self._share, self._others = own, share, others
        self._seen = 0.0

    def add(self, seconds: float) -> float:
        """Tells of seconds that are busy here; returns those that the others have added since."""
        if self._own is not None:
            self._own.seconds += seconds * self._share
        if self._others is None:
            return 0.0
        found = self._others.seconds - self._seen
        self._seen += found
        return found


ALONE = Beside()
