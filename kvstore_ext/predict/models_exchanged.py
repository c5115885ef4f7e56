"""EC-DNN: workers train by themselves, and exchange models every so many steps."""
from __future__ import annotations

from dataclasses import dataclass

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

        Everybody's model reaches everybody through the servers, of which each host's has a part of
        each: a host sends the others their parts of its workers' models, and each of their workers
        its part of all models.
        """
        workers = cluster.workers
        forward = sum(layer.forward for layer in network.layers)
        model = 4 * network.elements * FRAMES
        others, own = cluster.hosts - 1, cluster.workers_per_host
        sent = model * others * (own / cluster.hosts + own**2)
        exchanged = sent / min(cluster.send, cluster.receive)
        extra = self.extra * self.tau
        relabelling = extra * self.relabelled * workers * forward
        slowest = cluster.stragglers.factor if cluster.stragglers else 1.0
        computing = slowest * (self.tau * network.compute + relabelling + extra * network.compute)
        seconds = (computing + exchanged) / self.tau
        busy = exchanged / self.tau / seconds
        return Prediction(seconds, computing / self.tau, busy, busy, 0.0, 0.0, sent / self.tau)
