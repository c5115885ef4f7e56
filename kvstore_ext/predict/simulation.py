"""One prediction: a network, on a cluster, with a store."""
from __future__ import annotations

from dataclasses import astuple, dataclass
from statistics import mean
from typing import Any, List, Optional, Protocol, Sequence, Tuple

from .cluster import Cluster
from .events import Events
from .network import Network
from .topology import Topology, Usage
from .worker import Worker

WARM_UP = 3  # iterations that fill the wires and find the window, and do not count
COUNTED = 3
# Hosts up to which every one is simulated; and of stores whose keys wait for the slowest of them.
MOST_EACH, MOST_DRAWN = 8, 16


class Store(Protocol):
    """How a store's exchange is made for a network on a cluster.

    One whose connections get their shares of wires by chance also has `draws`: a function that
    returns stores with other shares.
    """

    @property
    def reached(self) -> float:
        """Of links' rates, what its connections get."""

    def make(
        self, events: Events, topology: Topology, cluster: Cluster, sizes: Sequence[int]
    ) -> Any:
        """An `Exchange` with `begin`, for keys of so many elements."""


@dataclass(frozen=True)
class Prediction:
    """What an iteration is like.

    Attributes
    ----------
    seconds : float
        That it takes, a mean over the workers.
    compute : float
        That it would take without communication.
    wire, server_wire : float
        Shares of the time in which wires are busy: of workers' hosts on average, and the busiest of
        servers' hosts; the busier way of each.
    processors, server_processors : float
        Likewise of processors.
    sent : float
        Bytes that leave a worker's host, on average, headers counted.
    """

    seconds: float
    compute: float
    wire: float
    server_wire: float
    processors: float
    server_processors: float
    sent: float

    @property
    def share_of_linear(self) -> float:
        """Of what as many workers without communication would do."""
        return self.compute / self.seconds


def predict(
    network: Network,
    cluster: Cluster,
    store: Store,
    by_name: bool = False,
    alike: Optional[bool] = None,
) -> Prediction:
    """Simulates some iterations and tells the mean of the last ones, and of a store's draws where
    every host is simulated.

    Parameters
    ----------
    network : Network
    cluster : Cluster
    store : Store
    by_name : bool
        Keys are numbered by their sorted names, as gluon.Trainer does, not by layers.
    alike : bool, optional
        Hosts that are alike are simulated once; by default where they are more than MOST_EACH, or
        than MOST_DRAWN for a store with draws.
    """
    most = MOST_DRAWN if hasattr(store, "draws") else MOST_EACH
    alike = cluster.hosts > most if alike is None else alike
    drawn = [store] if alike else getattr(store, "draws", lambda: [store])()
    cluster = cluster.reached(store.reached)
    found = [_predict(network, cluster, each, by_name, alike) for each in drawn]
    return Prediction(*(mean(values) for values in zip(*map(astuple, found))))


def _predict(
    network: Network, cluster: Cluster, store: Store, by_name: bool, alike: bool
) -> Prediction:
    events = Events()
    topology = Topology(events, cluster, alike)
    keys, sizes = numbered(network, by_name)
    exchange = store.make(events, topology, cluster, sizes)
    workers = [
        Worker(events, network.layers, keys, WARM_UP + COUNTED, own.count, own.factor)
        for own in topology.classes
    ]
    usage: List[Usage] = []
    workers[0].at_mark = lambda: usage.append(topology.usage())
    exchange.begin(workers)
    events.run()
    seconds = sum(
        own.count * (worker.marks[-1] - worker.marks[-1 - COUNTED])
        for own, worker in zip(topology.classes, workers)
    ) / COUNTED / sum(own.count for own in topology.classes)
    began, ended = usage[-1 - COUNTED], usage[-1]
    took = workers[0].marks[-1] - workers[0].marks[-1 - COUNTED]
    wire, server_wire, processors, server_processors = (
        min(1.0, (last - first) / took) for first, last in zip(began[:4], ended[:4])
    )
    sent = (ended.sending - began.sending) * cluster.send / COUNTED
    computing = cluster.slowest * network.compute
    return Prediction(
        seconds, computing, wire, server_wire, processors, server_processors, sent
    )


def numbered(network: Network, by_name: bool = False) -> Tuple[List[List[int]], List[int]]:
    """The keys of each layer, and the elements of each key."""
    names = [name for layer in network.layers for name in layer.parameters]
    number = {name: key for key, name in enumerate(sorted(names) if by_name else names)}
    sizes = [0] * len(names)
    for layer in network.layers:
        for name, elements in layer.parameters.items():
            sizes[number[name]] = elements
    return [[number[name] for name in layer.parameters] for layer in network.layers], sizes
