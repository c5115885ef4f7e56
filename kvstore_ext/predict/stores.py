"""The stores that are compared, by the names that users give them."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Dict, List, Sequence

from .cluster import Cluster
from .codecs import CODECS, PLAIN, SLIM_ALL
from .events import Events
from .parameter_servers import ParameterServers, Rules
from .placement import SLICE_BYTES, lane, stock, stock_p3
from .ring import Ring, RingRules
from .speeds import Speeds
from .topology import Topology
from .windows import AdaptedWindow, settled

_STOCK_HEADER = 150  # bytes of a stock message beside its payload
# How far the shares that TCP's connections get of a wire lie apart where no window of the store's
# own bounds them: the deviation of their logarithms. Fitted to what `python -m
# benchmarks.prediction.bursts` has measured over CUBIC with 4 and 8 hosts; no replay was looked at.
UNLIKE = 0.1
# Of a link's rate, what rings get; others fill it. Fitted to the run of Horovod with ResNet-50, 4
# hosts and 1 Gbit/s in docs/figures/readme.jsonl.
REACHED = 0.975
_DRAWS = 4  # of all connections' shares: a prediction is their mean


@dataclass(frozen=True)
class LaneStore:
    """The lane, with a compression or without.

    Parameters
    ----------
    speeds : Speeds
        Of the hosts' processors.
    codec : str
        A compression, "slim_dp", or "" for none.
    priorities : bool
    updates : bool
        Optimizers run on the servers.
    shares : float
        Of the elements that travel: Slim-DP's.
    indices : float
        Of the elements whose index travels as well, to the servers.
    slice_bytes : int
        Of a slice at most, as it travels; with Slim-DP, as it would travel whole.
    """

    speeds: Speeds
    codec: str = ""
    priorities: bool = True
    updates: bool = False
    shares: float = 1.0
    indices: float = 0.0
    slice_bytes: int = SLICE_BYTES
    reached: ClassVar[float] = 1.0

    def make(
        self, events: Events, topology: Topology, cluster: Cluster, sizes: Sequence[int]
    ) -> ParameterServers:
        """The exchange of keys of so many elements."""
        codec = CODECS.get(self.codec, PLAIN)
        speeds, workers = self.speeds, cluster.workers
        there = self.shares * codec.there + self.indices * 4
        back = self.shares * codec.back(workers)
        # Without priorities the lane learns no order, and not how long training waits.
        window = AdaptedWindow if self.priorities else settled
        rules = Rules(
            lane(sizes, cluster.server_count, codec.cut(workers), self.slice_bytes),
            there,
            back,
            "lane",
            window(cluster, 2 * cluster.delay + speeds.wake, self.slice_bytes),
            priorities=self.priorities,
            costs=speeds.costs(self.codec, self.updates).of_share(self.shares),
            wake=speeds.wake,
            answers=codec.answers,
        )
        return ParameterServers(topology, rules)


@dataclass(frozen=True)
class StockStore:
    """MXNet's own: `dist_sync`, or P3 with its launcher's option.

    Parameters
    ----------
    speeds : Speeds
        Of the hosts' processors.
    p3 : bool
    unlike : float
        How far shares of wires lie apart.
    draw : int
        Which of many shares of wires connections get.
    """

    speeds: Speeds
    p3: bool = False
    unlike: float = UNLIKE
    draw: int = 0
    reached: ClassVar[float] = 1.0

    def draws(self) -> List[StockStore]:
        """Stores whose connections get other shares."""
        return [replace(self, draw=draw) for draw in range(_DRAWS)]

    def make(
        self, events: Events, topology: Topology, cluster: Cluster, sizes: Sequence[int]
    ) -> ParameterServers:
        """The exchange of keys of so many elements."""
        place = stock_p3 if self.p3 else stock
        rules = Rules(
            place(sizes, cluster.server_count),
            queue="shared" if self.p3 else "first",
            priorities=self.p3,
            back_by_priority=False,
            header=_STOCK_HEADER,
            costs=self.speeds.stock(),
            wake=self.speeds.wake,
            unlike=self.unlike,
            draw=self.draw,
        )
        return ParameterServers(topology, rules)


@dataclass(frozen=True)
class RingStore:
    """Horovod's ring."""

    speeds: Speeds
    reached: ClassVar[float] = REACHED

    def make(
        self, events: Events, topology: Topology, cluster: Cluster, sizes: Sequence[int]
    ) -> Ring:
        """The exchange of keys of so many elements."""
        rules = RingRules(byte=self.speeds.ring_byte, step=self.speeds.ring_step)
        return Ring(events, topology, cluster, [4 * size for size in sizes], rules)


def stores(speeds: Speeds) -> Dict[str, Any]:
    """All of them."""
    return {
        "p3": LaneStore(speeds),
        **{name: LaneStore(speeds, name) for name in CODECS},
        "slim_dp": LaneStore(speeds, "slim_dp", shares=SLIM_ALL),
        "dist_sync": StockStore(speeds),
        "stock_p3": StockStore(speeds, p3=True),
        "ring": RingStore(speeds),
    }
