"""A ring all-reduce, as Horovod does it: gradients that are ready are summed together, in turn."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Sequence

from .cluster import Cluster
from .events import Events
from .network import FRAMES
from .topology import Topology
from .worker import Worker


@dataclass(frozen=True)
class RingRules:
    """What a ring is like.

    Parameters
    ----------
    fused : int
        Bytes at most that are summed together (HOROVOD_FUSION_THRESHOLD).
    cycle : float
        Seconds at least from one look for gradients that are ready to the next
        (HOROVOD_CYCLE_TIME).
    byte : float
        Seconds of a processor for a byte that is sent, received and added.
    step : float
        Seconds that each step of a sum takes beside the wire and its delay.
    """

    fused: int = 128 << 20
    cycle: float = 0.001
    byte: float = 0.0
    step: float = 0.0


class Ring:
    """All workers' sums.

    Parameters
    ----------
    events : Events
    topology : Topology
    cluster : Cluster
    sizes : sequence of int
        Bytes of each key.
    rules : RingRules
    """

    def __init__(
        self,
        events: Events,
        topology: Topology,
        cluster: Cluster,
        sizes: Sequence[int],
        rules: RingRules,
    ) -> None:
        self._events, self._topology = events, topology
        self._cluster, self._rules = cluster, rules
        self._sizes = sizes
        self._workers: List[Worker] = []
        self._counted: Dict[int, int] = {}  # workers that have a key's gradient
        self._waiting: List[int] = []  # keys of which all have
        self._works = False

    def begin(self, workers: Sequence[Worker]) -> None:
        """Has the workers, one of each class, begin."""
        self._workers = list(workers)
        for worker in workers:
            worker.begin(self)

    def ready(self, worker: Worker, key: int) -> None:
        """A worker has a key's gradient."""
        self._counted[key] = self._counted.get(key, 0) + worker.count
        if self._counted[key] < self._cluster.workers:
            return
        self._counted[key] = 0
        self._waiting.append(key)
        if not self._works:
            self._works = True
            self._events.at(self._events.now + self._rules.cycle, self._sum)

    def _sum(self) -> None:
        if not self._waiting:
            self._works = False
            return
        together, size = [self._waiting.pop(0)], 0
        size = self._sizes[together[0]]
        while self._waiting and size + self._sizes[self._waiting[0]] <= self._rules.fused:
            together.append(self._waiting.pop(0))
            size += self._sizes[together[-1]]
        seconds = self.seconds(size)
        hosts = {place.host: place for place in self._topology.workers}
        for place in hosts.values():
            place.sender.wire.busy += self._wire(size)
            place.wire.busy += self._wire(size)
        self._events.at(self._events.now + seconds, self._summed, together)

    def _summed(self, together: List[int]) -> None:
        self._events.at(self._events.now + self._rules.cycle, self._sum)
        for key in together:
            for worker in self._workers:
                worker.arrived(key)

    def seconds(self, size: int) -> float:
        """That so many bytes take: 2 (N - 1) steps, each of an N-th of them."""
        rules, workers = self._rules, self._cluster.workers
        step = size / workers * rules.byte + self._cluster.delay + rules.step
        return self._wire(size) + 2 * (workers - 1) * step

    def _wire(self, size: int) -> float:
        """Seconds of them in which the wires are busy."""
        cluster = self._cluster
        if cluster.hosts == 1:
            return 0.0
        rate = min(cluster.send, cluster.receive)
        return 2 * (cluster.workers - 1) / cluster.workers * size * FRAMES / rate
