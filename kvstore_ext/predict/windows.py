"""The windows that the lane's estimator advises (csrc/transport/window.h)."""
from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Protocol

from .cluster import Cluster

_PART_SECONDS = 0.0006
_WAKE_UP = 0.0002
_GROWTH = 1.1
_MOST_SLICES = 64
# Windows of all of a worker's links, that travel while training waits: with fewer it hurries.
_FEW_WINDOWS, _MANY_WINDOWS = 1.4, 1.9


class PartsAtATime(Protocol):
    """Of the lane: bytes of a part, and of all that may be under way to a peer by now."""

    @property
    def part(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    def iterated(self, waits: float, sent: float) -> None:
        """An iteration has ended, in which training has waited for this share of the time, and a
        worker has sent so many bytes to all servers, or got them back: the more of both."""


@dataclass(frozen=True)
class Window:
    """One that stays as it is."""

    part: int
    bytes: int

    def iterated(self, waits: float, sent: float) -> None:
        """As PartsAtATime has it."""


FIRST_WINDOW = Window(200_000, 800_000)


def settled(
    cluster: Cluster, round_trip: float, slice_bytes: int, hurries: bool = False
) -> Window:
    """Where all links of a host are busy at a time.

    Parameters
    ----------
    cluster : Cluster
    round_trip : float
        Seconds from a message without data to its answer.
    slice_bytes : int
        Of a slice at most.
    hurries : bool
        Training hardly waits for the network.
    """
    own = _own_servers(cluster)
    # Those of a host with itself have no part in its wire.
    others = cluster.server_count - own
    links = others * cluster.workers_per_host + own * (cluster.workers - cluster.workers_per_host)
    rate = cluster.send / max(1, links)
    least = max(FIRST_WINDOW.part, rate * _PART_SECONDS)
    part = slice_bytes
    while part / 2 >= least:
        part //= 2
    most = _MOST_SLICES * max(slice_bytes, FIRST_WINDOW.part)
    held = min(_GROWTH * rate * (round_trip + _WAKE_UP), most)
    bytes_ = FIRST_WINDOW.bytes / (2 if hurries else 1)
    return Window(part, part * max(2, ceil(bytes_ / part), 1 + ceil(held / part)))


class AdaptedWindow:
    """That of all links of a job, which depends on how long training waits.

    Parameters
    ----------
    cluster, round_trip, slice_bytes
        As of `settled`.

    Attributes
    ----------
    part, bytes : int
        By now.
    """

    def __init__(self, cluster: Cluster, round_trip: float, slice_bytes: int) -> None:
        calm, hurried = (
            settled(cluster, round_trip, slice_bytes, hurries) for hurries in (False, True)
        )
        self.part, self.bytes = calm.part, calm.bytes
        self._calm, self._hurried = calm.bytes, hurried.bytes
        others = cluster.server_count - _own_servers(cluster)
        self._away = others / cluster.server_count  # of what a worker sends
        self._whole = FIRST_WINDOW.bytes * others

    def iterated(self, waits: float, sent: float) -> None:
        """As PartsAtATime has it; each counts, as simulated ones are alike."""
        travelled = waits * sent * self._away
        if travelled < _FEW_WINDOWS * self._whole:
            self.bytes = self._hurried
        if travelled > _MANY_WINDOWS * self._whole:
            self.bytes = self._calm


def _own_servers(cluster: Cluster) -> int:
    """Those on a worker's own host."""
    return max(1, cluster.server_count // cluster.hosts) if cluster.beside else 0
