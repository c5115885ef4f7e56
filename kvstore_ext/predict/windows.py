"""The window that the lane's estimator settles on (csrc/transport/window.h)."""
from __future__ import annotations

from math import ceil

from .cluster import Cluster
from .parameter_servers import FIRST_WINDOW, Window

_PART_SECONDS = 0.0006
_WAKE_UP = 0.0002
_GROWTH = 1.1
_MOST_SLICES = 64
_LEAST_TOGETHER = 24 * FIRST_WINDOW.part  # bytes, on all links that share a wire


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
    own = max(1, cluster.server_count // cluster.hosts) if cluster.beside else 0
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
    sharing = max(cluster.workers, cluster.server_count)
    bytes_ = min(max(_LEAST_TOGETHER // sharing, 2 * FIRST_WINDOW.part), FIRST_WINDOW.bytes)
    return Window(part, part * max(2, ceil(bytes_ / part), 1 + ceil(held / part)))
