"""What a worker takes over of the rounds that have gone without it (joining_store.py).

What the servers update it pulls. What every worker updates by itself, one leaves on the servers
that has missed no round, and those that have missed some take it from there.
"""
from __future__ import annotations

from typing import AbstractSet, Dict, Iterator, List, Optional, Tuple

from ..lane.lane import Lane
from ..optimizer.replica import Followed
from ..protocol.handover import Handover
from .key_router import KeyRouter

# By a store's number, its replicas: its own, and those of Trainers or Modules; and what they count.
Replicas = Dict[int, List[Optional[Followed]]]


def hand_over(
    lane: Lane,
    replicas: Replicas,
    routers: Dict[int, KeyRouter],
    whole: int,
    missed: AbstractSet[int],
) -> None:
    """To be called on all workers at the same time. All count steps as one of them then.

    Parameters
    ----------
    replicas, routers
        Of the stores that are open here. Another worker may have one more or less, whose last
        reference has gone at another time: nobody trains with that.
    whole, missed
        The rank of the worker whose counts all take over, and the ranks of those that take its
        values as well.
    """
    leaves, takes = lane.rank == whole, lane.rank in missed
    handover = Handover(lane.worker, lane.servers.count)
    if leaves:
        lane.wait_for_all()
        for number, router in routers.items():
            handover.leave(f"{number} steps", note=router.progress())
        for name, replica in _named(replicas):
            handover.leave(name, note=replica.progress())
            for item in replica.items if missed else ():
                handover.leave(f"{name} {item.name}", item.state())
        handover.settle()
    lane.barrier()
    if not leaves:
        for number, router in routers.items():
            left = handover.take(f"{number} steps")
            if left is not None:
                router.follow(left[1])
        for name, replica in _named(replicas):
            _take(handover, name, replica, takes)
    lane.barrier()
    if leaves:
        handover.clear()


def _take(handover: Handover, name: str, replica: Followed, values: bool) -> None:
    progress = handover.take(name)
    if progress is None:
        return
    replica.follow(progress[1])
    for item in replica.items if values else ():
        left = handover.take(f"{name} {item.name}")
        if left is not None:
            item.take(left[0])


def _named(replicas: Replicas) -> Iterator[Tuple[str, Followed]]:
    for store, found in replicas.items():
        for place, replica in enumerate(found):
            if replica is not None:
                yield f"{store} {place}", replica
