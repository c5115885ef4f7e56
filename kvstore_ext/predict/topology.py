"""Hosts, their wires and the connections between workers and servers: each, or one for all alike.

Where hosts are alike they do the same at the same time, and one worker stands for all of its class.
What it sends to a server arrives once from each of them, and what a server sends it leaves once for
each. Servers stay as many as they are, since each has its own share of the keys. The wire of a
worker's host then carries what a server beside it sends on average, and a server's what the worker
beside it does.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import List, NamedTuple, Optional, Tuple

from .cluster import Cluster
from .events import Events
from .processors import Processors
from .wires import Connection, Sender, Traffic, Wire


@dataclass(frozen=True)
class Class:
    """Workers that are alike."""

    count: int
    factor: float  # by which they compute more slowly than the network says


class Place(NamedTuple):
    """Where a process runs."""

    host: int
    sender: Sender
    wire: Wire  # by which it is reached
    processors: Processors


class Usage(NamedTuple):
    """Seconds in which something was busy so far."""

    wire: float  # of workers' hosts on average, the busier way
    server_wire: float  # of servers' hosts the busiest
    processors: float  # of workers' hosts on average, a processor
    server_processors: float  # of servers' hosts the busiest
    sending: float  # of workers' hosts on average


class Topology:
    """The hosts of a cluster.

    Parameters
    ----------
    events : Events
    cluster : Cluster
    alike : bool
        Workers that are alike are simulated once.

    Attributes
    ----------
    classes : list of Class
    workers, servers : list of Place
        One for each class of workers, and for each server.
    """

    def __init__(self, events: Events, cluster: Cluster, alike: bool) -> None:
        self._events, self._cluster, self._alike = events, cluster, alike
        self._shared: Optional[Processors] = None
        if cluster.shared_by > 1:
            self._shared = Processors(events, cluster.processors)
        self.classes = _classes(cluster, alike)
        self.workers: List[Place] = []
        self.servers: List[Place] = []
        (self._make_alike if alike else self._make_each)()

    def _make_each(self) -> None:
        cluster = self._cluster
        beside = cluster.beside
        hosts = [self._place(host) for host in range(cluster.hosts)]
        if not beside:
            hosts += [self._place(cluster.hosts + number) for number in range(cluster.server_count)]
        self.workers = [hosts[rank // cluster.workers_per_host] for rank in range(cluster.workers)]
        first, count = (0, cluster.hosts) if beside else (cluster.hosts, cluster.server_count)
        self.servers = [hosts[first + rank % count] for rank in range(cluster.server_count)]

    def _make_alike(self) -> None:
        cluster = self._cluster
        hosts = cluster.hosts
        beside = cluster.beside
        kinds = [(Traffic(), Traffic()) for _ in range(2)]  # of workers and of servers, each way
        for number, own in enumerate(self.classes):
            share = own.count / cluster.workers
            self.workers.append(self._place(number, kinds[0], kinds[1], share, beside))
        for rank in range(cluster.server_count):
            place = self._place(hosts + rank, kinds[1], kinds[0], 1 / hosts, beside)
            self.servers.append(place)

    def _place(
        self,
        host: int,
        own: Optional[Tuple[Traffic, Traffic]] = None,
        others: Optional[Tuple[Traffic, Traffic]] = None,
        share: float = 1.0,
        beside: bool = False,
    ) -> Place:
        cluster = self._cluster
        wires = []
        for way, rate in enumerate((cluster.send, cluster.receive)):
            others_way = others[way] if others is not None and beside else None
            wires.append(Wire(rate, others_way, own[way] if own else None, share))
        sender = Sender(self._events, wires[0])
        processors = self._shared or Processors(self._events, cluster.processors)
        return Place(host, sender, wires[1], processors)

    @property
    def delay(self) -> float:
        """Seconds from a host to another."""
        return self._cluster.delay

    @property
    def shared(self) -> bool:
        """Whether all hosts share their processors."""
        return self._shared is not None

    def usage(self) -> Usage:
        """What has been used so far."""
        total = self._cluster.workers
        sending = receiving = processors = 0.0
        for own, place in zip(self.classes, self.workers):
            share = own.count / total
            sending += share * place.sender.wire.busy
            receiving += share * place.wire.busy
            processors += share * place.processors.busy / place.processors.count
        wires = [max(place.sender.wire.busy, place.wire.busy) for place in self.servers]
        busiest = max(place.processors.busy / place.processors.count for place in self.servers)
        return Usage(max(sending, receiving), max(wires), processors, busiest, sending)

    def connect(self, number: int, server: int) -> Tuple[Connection, Connection]:
        """From a class of workers to a server, and back."""
        cluster = self._cluster
        worker, other = self.workers[number], self.servers[server]
        near, far = 1.0, 1.0  # what a part of the worker's counts on its wire, and on the server's
        if self._alike:
            away = (cluster.hosts - 1) / cluster.hosts if cluster.beside else 1.0
            near, far = cluster.workers_per_host * away, self.classes[number].count * away
        elif worker.host == other.host:
            near = far = 0.0
        there = Connection(
            worker.sender, other.wire, other.sender, worker.wire, cluster.delay, near, far
        )
        back = Connection(
            other.sender, worker.wire, worker.sender, other.wire, cluster.delay, far, near
        )
        return there, back


def _classes(cluster: Cluster, alike: bool) -> List[Class]:
    slow = cluster.stragglers
    late = min(slow.count, cluster.workers) if slow else 0
    factor = slow.factor if slow else 1.0
    quick = cluster.workers - late
    if alike:
        return [Class(count, own) for count, own in ((quick, 1.0), (late, factor)) if count]
    return [Class(1, factor if rank >= quick else 1.0) for rank in range(cluster.workers)]
