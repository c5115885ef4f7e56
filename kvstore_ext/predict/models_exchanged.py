"""EC-DNN: workers train by themselves, and exchange models every so many steps."""
from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import List, Tuple

from .cluster import Cluster
from .network import FRAMES, Network
from .simulation import Prediction

_FLOAT = 4


@dataclass(frozen=True)
class EcDnn:
    """What a step takes with EC-DNN (Sun and Liu, Neurocomputing 2018), in the mean.

    Defaults are those of `ec_dnn.Method`, but for tau, which has none there.

    Parameters
    ----------
    tau : int
        Local steps between two aggregations.
    p : float
        Steps of compression after each, as a share of tau.
    mu : float
        Portion of a worker's examples that the ensemble relabels at each.
    diverse : bool
        Local training is by equation 9, as with alpha above 0: before it every worker gets all
        models once more, for their average output on the examples of the next tau steps.
    examples : int
        Of all workers together, each of which has a part of its own. CIFAR's by default.
    """

    tau: int = 2000
    p: float = 0.1
    mu: float = 0.7
    diverse: bool = True
    examples: int = 50_000

    def predict(self, network: Network, cluster: Cluster) -> Prediction:
        """A local step, with its part of aggregation, relabelling and compression.

        Workers hold every worker's model in turn. A model goes to the servers, each of which passes
        its part on to all workers but the one that it is from. While a model computes its outputs
        the next one is on its way; it sets out when the one before has come. So a turn takes what
        its busiest link does, mostly that of the host from which the model is, whose server passes
        its part on as well. The processors' number and codecs' speeds make no difference.
        """
        forward = cluster.slowest * sum(layer.forward for layer in network.layers)
        epoch = self.examples / cluster.workers / network.batch  # of a worker, in mini-batches
        passes = [self.mu * epoch]
        if self.diverse:
            passes.append(min(self.tau, epoch))  # as many of its examples as tau steps see
        compression = math.ceil(self.p * self.tau - 1e-9)  # steps, as `ec_dnn.Method` has
        training = (self.tau + compression) * cluster.slowest * network.compute
        turns = _Turns(_FLOAT * network.elements * FRAMES, cluster)
        whole = training + sum(turns.seconds(forward * batches) for batches in passes)
        computing = training + cluster.workers * forward * sum(passes)
        wire, server_wire = (len(passes) * busy / whole for busy in turns.busy())
        sent = len(passes) * turns.sent() / self.tau
        return Prediction(
            whole / self.tau, computing / self.tau, wire, server_wire, 0.0, 0.0, sent
        )


class _Turns:
    """Every worker's model to every worker, one after the other."""

    def __init__(self, model: float, cluster: Cluster) -> None:
        self._model, self._cluster = model, cluster
        count, hosts = cluster.server_count, cluster.hosts
        # Shares of the parameters on each host that has workers, and on each that has none.
        self._beside, self._apart = [0.0] * hosts, [1 / count] * count
        if cluster.beside:
            each, more = divmod(count, hosts)
            self._beside = [(each + (host < more)) / count for host in range(hosts)]
            self._apart = []
        # Hosts are of two kinds at most, however many there are.
        taken = {part: self._turn(part) for part in set(self._beside)}
        own = cluster.workers_per_host
        self._turns = [taken[part] for part in self._beside for _ in range(own)]

    def seconds(self, computing: float) -> float:
        """Of all turns, where each model also computes for so long."""
        first, *others = self._turns
        return first + sum(max(turn, computing) for turn in others) + computing

    def _turn(self, root: float) -> float:
        """Of a model whose host has such a part of the parameters."""
        workers, own = self._cluster.workers, self._cluster.workers_per_host
        ways = [(1 - root + root * (workers - own), (own - 1) * (1 - root))]
        others = Counter(self._beside)
        others[root] -= 1
        for part in +others:
            ways.append((part * (workers - own - 1), part + own * (1 - part)))
        ways += [(part * (workers - 1), part) for part in set(self._apart)]
        return max(self._takes(way) for way in ways) + 2 * self._cluster.delay

    def busy(self) -> Tuple[float, float]:
        """Seconds in which links carry all of it, the busier way: of workers' hosts in the mean,
        and of the busiest host with servers."""
        beside = [self._takes(way) for way in self._of_hosts()]
        workers = self._cluster.workers
        apart = [self._takes((part * workers * (workers - 1), part * workers))
                 for part in self._apart]  # fmt: skip
        with_servers = [busy for busy, part in zip(beside, self._beside) if part]
        return sum(beside) / len(beside), max(apart + with_servers)

    def sent(self) -> float:
        """Bytes that a host with workers sends, in the mean."""
        return self._model * sum(sent for sent, _ in self._of_hosts()) / self._cluster.hosts

    def _of_hosts(self) -> List[Tuple[float, float]]:
        """Models that each host with workers sends and receives in all turns."""
        workers, own = self._cluster.workers, self._cluster.workers_per_host
        elsewhere = workers - own
        return [
            (own * (1 - part) + part * elsewhere * (own + elsewhere - 1),
             part * elsewhere + (1 - part) * own * (workers - 1))
            for part in self._beside
        ]  # fmt: skip

    def _takes(self, models: Tuple[float, float]) -> float:
        sent, received = models
        return self._model * max(sent / self._cluster.send, received / self._cluster.receive)
