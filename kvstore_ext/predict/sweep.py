"""Predictions for many clusters and all stores."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from .cluster import Cluster, link_rate
from .limits import limit
from .models_exchanged import EcDnn
from .network import Network
from .simulation import predict


@dataclass(frozen=True)
class Row:
    """One store on one cluster.

    Attributes
    ----------
    gigabits : float
    hosts : int
    store : str
    seconds : float
        An iteration.
    throughput : float
        Samples a second, of all workers.
    linear : float
        The share of what as many workers without communication would do.
    limit : str
        What limits it.
    """

    gigabits: float
    hosts: int
    store: str
    seconds: float
    throughput: float
    linear: float
    limit: str


def rows(
    network: Network,
    base: Cluster,
    bandwidths: Sequence[float],
    hosts: Sequence[int],
    stores: Dict[str, Any],
) -> Iterator[Row]:
    """One for each, in the order of bandwidths, hosts and stores.

    Parameters
    ----------
    network : Network
    base : Cluster
        All but how many hosts there are, and how fast their links.
    bandwidths : sequence of float
        Gbit/s of a host's link each way.
    hosts : sequence of int
    stores : dict of str to Store or EcDnn
        By the names that rows have.
    """
    for gigabits in bandwidths:
        for count in hosts:
            rate = link_rate(gigabits)
            cluster = replace(base, hosts=count, send=rate, receive=rate)
            for name, store in stores.items():
                seconds, limited = _one(network, cluster, store)
                samples = network.batch * cluster.workers
                # All wait for the slowest, whatever communication costs.
                linear = cluster.slowest * network.compute / seconds
                yield Row(gigabits, count, name, seconds, samples / seconds, linear, limited)


def _one(network: Network, cluster: Cluster, store: Any) -> Tuple[float, str]:
    if isinstance(store, EcDnn):
        found = store.predict(network, cluster)
    else:
        found = predict(network, cluster, store)
    return found.seconds, limit(found)


def best(found: Sequence[Row]) -> List[Row]:
    """Of each bandwidth and number of hosts the fastest store; the first one, of those within a per
    cent of it."""
    places: Dict[Tuple[float, int], List[Row]] = {}
    for row in found:
        places.setdefault((row.gigabits, row.hosts), []).append(row)
    chosen = []
    for own in places.values():
        least = min(row.seconds for row in own)
        chosen.append(next(row for row in own if 0.99 * row.seconds <= least))
    return chosen
