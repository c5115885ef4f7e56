"""Hosts, their wires and the connections between workers and servers: each, or one for all alike.

Where hosts are alike they do the same at the same time, and one worker stands for all of its class.
What it sends to a server arrives once from each of them, and what a server sends it leaves once for
each. Servers stay as many as they are, since each has its own share of the keys. The wire and the
processors of a worker's host then also do what a server beside it needs on average, and a server's
what the workers beside it do.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import List, NamedTuple, Optional, Sequence, Tuple

from .beside import ALONE, Beside, Load
from .cluster import Cluster
from .events import Events
from .processors import Processors
from .wires import Connection, Sender, Wire


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


class _Sharing(NamedTuple):
    """What a host's wire, each way, and its processors do for processes simulated elsewhere."""

    sends: Beside = ALONE
    receives: Beside = ALONE
    computes: Beside = ALONE


_UNSHARED = _Sharing()


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
    alike : bool
    classes : list of Class
    workers, servers : list of Place
        One for each class of workers, and for each server.
    """

    def __init__(self, events: Events, cluster: Cluster, alike: bool) -> None:
        self._events, self._cluster, self.alike = events, cluster, alike
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
        of_workers, of_servers = ([Load() for _ in _Sharing._fields] for _ in range(2))
        for number, own in enumerate(self.classes):
            share = own.count / cluster.workers
            self.workers.append(self._place(number, self._sharing(of_workers, share, of_servers)))
        count = cluster.server_count
        places = [
            self._place(
                cluster.hosts + number, self._sharing(of_servers, 1 / cluster.hosts, of_workers)
            )
            for number in range(min(count, cluster.hosts) if cluster.beside else count)
        ]
        self.servers = [places[rank % len(places)] for rank in range(count)]

    def _sharing(self, own: Sequence[Load], share: float, others: Sequence[Load]) -> _Sharing:
        if not self._cluster.beside:
            return _UNSHARED
        return _Sharing(*(Beside(here, share, there) for here, there in zip(own, others)))

    def _place(self, host: int, sharing: _Sharing = _UNSHARED) -> Place:
        cluster = self._cluster
        sender = Sender(self._events, Wire(cluster.send, sharing.sends))
        processors = self._shared or Processors(self._events, cluster.processors, sharing.computes)
        return Place(host, sender, Wire(cluster.receive, sharing.receives), processors)

    @property
    def delay(self) -> float:
        """Seconds from a host to another."""
        return self._cluster.delay

    def at_once(self, number: int) -> int:
        """For how many workers the processors of a class do each task, where one stands for all."""
        if self._shared is not None:
            return self.classes[number].count
        return self._cluster.workers_per_host if self.alike else 1

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
        if self.alike:
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
    quick = cluster.workers - late
    if alike:
        both = ((quick, 1.0), (late, cluster.slowest))
        return [Class(count, factor) for count, factor in both if count]
    return [
        Class(1, cluster.slowest if rank >= quick else 1.0) for rank in range(cluster.workers)
    ]
