"""The window that the lane's estimator settles on (csrc/transport/window.h)."""
from __future__ import annotations

from .cluster import Cluster
from .parameter_servers import Window

_LEAST_PART = 50_000
_PART_SECONDS = 0.0006
_WAKE_UP = 0.0002
_GROWTH = 1.1
_MOST_SLICES = 64


def settled(cluster: Cluster, round_trip: float, slice_bytes: int) -> Window:
    """Where all links of a host are busy at a time.

    Parameters
    ----------
    cluster : Cluster
    round_trip : float
        Seconds from a message without data to its answer.
    slice_bytes : int
        Of a slice at most.
    """
    peers = cluster.server_count * cluster.workers_per_host
    if cluster.beside:
        peers += cluster.workers * max(1, cluster.server_count // cluster.hosts)
    rate = cluster.send / peers
    least = max(_LEAST_PART, rate * _PART_SECONDS)
    part = slice_bytes
    while part / 2 >= least:
        part //= 2
    held = min(_GROWTH * rate * (round_trip + _WAKE_UP), _MOST_SLICES * slice_bytes)
    return Window(part, part * (1 + round(held / part)))
