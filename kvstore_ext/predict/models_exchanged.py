"""EC-DNN: workers train by themselves, and exchange models every so many steps."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from .cluster import Cluster
from .network import FRAMES, Network
from .simulation import Prediction


@dataclass(frozen=True)
class EcDnn:
    """What a step takes with EC-DNN (Sun and Liu, Neurocomputing 2018), in the mean.

    Parameters
    ----------
    tau : int
        Local steps between two aggregations.
    extra : float
        Steps of compression after each, as a share of tau: p.
    relabelled : float
        Batches that the ensemble relabels for each of those steps' batches: as many examples as
        the network then learns from.
    """

    tau: int = 2000
    extra: float = 0.1
    relabelled: float = 1.0

    def seconds(self, network: Network, cluster: Cluster) -> float:
        """Seconds of a local step, as `predict` has it."""
        return self.predict(network, cluster).seconds

    def predict(self, network: Network, cluster: Cluster) -> Prediction:
        """A local step, with its part of aggregation, relabelling and compression.

        Everybody's model reaches everybody through the servers, of which each has a part of every
        model: a worker sends them its own, and gets all models from them. What the busiest host
        takes counts; a host's link takes nothing of what stays on it. Latency, the processors'
        number and codecs' speeds make no difference to it.
        """
        workers = cluster.workers
        forward = sum(layer.forward for layer in network.layers)
        model = 4 * network.elements * FRAMES
        sent, received = _of_busiest(cluster)
        exchanged = model * max(sent / cluster.send, received / cluster.receive)
        extra = self.extra * self.tau
        relabelling = extra * self.relabelled * workers * forward
        slowest = cluster.stragglers.factor if cluster.stragglers else 1.0
        computing = slowest * (self.tau * network.compute + relabelling + extra * network.compute)
        seconds = (computing + exchanged) / self.tau
        busy = exchanged / self.tau / seconds
        mean = model * _of_worker_host(cluster) / self.tau
        return Prediction(seconds, computing / self.tau, busy, busy, 0.0, 0.0, mean)


def _of_worker_host(cluster: Cluster) -> float:
    """Models that a host with workers sends for one aggregation, on average."""
    own, hosts = cluster.workers_per_host, cluster.hosts
    if not cluster.beside:
        return own
    to_others = cluster.workers * (cluster.workers - own) / hosts  # as a server
    return to_others + own * (1 - 1 / hosts)


def _of_busiest(cluster: Cluster) -> Tuple[float, float]:
    """Models that the host with most servers sends and receives for one aggregation, or one that
    has workers alone, where that takes longer."""
    workers, own = cluster.workers, cluster.workers_per_host
    hosts = cluster.hosts if cluster.beside else cluster.server_count
    part = -(-cluster.server_count // hosts) / cluster.server_count  # of all parameters
    beside = own if cluster.beside else 0
    # As a server to the workers of other hosts, and as workers to the servers of others.
    to_others, from_others = part * workers * (workers - beside), part * (workers - beside)
    sent = to_others + beside * (1 - part)
    received = from_others + beside * workers * (1 - part)
    alone = not cluster.beside or cluster.server_count < cluster.hosts
    ways = [(sent, received)] + [(own, own * workers)] * alone
    return max(ways, key=lambda way: max(way[0] / cluster.send, way[1] / cluster.receive))
