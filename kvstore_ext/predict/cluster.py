"""The hosts of a job, what joins them, and what computes on them."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional


@dataclass(frozen=True)
class Stragglers:
    """Workers that compute more slowly than the others.

    Parameters
    ----------
    count : int
    factor : float
        How many times as long they take.
    """

    count: int
    factor: float


@dataclass(frozen=True)
class Cluster:
    """Hosts with a link each to a switch that is never the limit.

    Parameters
    ----------
    hosts : int
        Those that have workers.
    send, receive : float
        Bytes a second that a host's link carries each way, headers counted.
    delay : float
        Seconds that a packet takes from a host to another, beside the wire's own time.
    servers : int, optional
        As many as hosts unless given.
    beside : bool
        Servers run on the workers' hosts, in turn; otherwise each has a host of its own.
    workers_per_host : int
    processors : int
        Of a host, for all that is not the network's own computing.
    shared_by : int
        Hosts that share these processors: 1, or all of a cluster that one machine plays.
    stragglers : Stragglers, optional
    """

    hosts: int
    send: float
    receive: float
    delay: float = 25e-6
    servers: Optional[int] = None
    beside: bool = True
    workers_per_host: int = 1
    processors: int = 4
    shared_by: int = 1
    stragglers: Optional[Stragglers] = None

    @property
    def slowest(self) -> float:
        """How many times as long as the network says the slowest worker computes."""
        return self.stragglers.factor if self.stragglers else 1.0

    @property
    def workers(self) -> int:
        """In all."""
        return self.hosts * self.workers_per_host

    @property
    def server_count(self) -> int:
        """In all."""
        return self.hosts if self.servers is None else self.servers

    @classmethod
    def of(cls, hosts: int, gigabits: float, **others: object) -> Cluster:
        """With links of so many Gbit/s each way, headers counted."""
        rate = link_rate(gigabits)
        return cls(hosts, rate, rate, **others)  # type: ignore[arg-type]

    def reached(self, share: float) -> Cluster:
        """The same with links of which so much is reached."""
        return replace(self, send=self.send * share, receive=self.receive * share)


def link_rate(gigabits: float) -> float:
    """Bytes a second of a link of so many Gbit/s, each way."""
    return gigabits * 1e9 / 8
