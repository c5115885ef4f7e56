"""Numbers processes as MXNet's scheduler will, so that a worker's rank is the same everywhere.

ps-lite gives ranks within a role by the addresses of the processes, as text and downwards, then by
their ports upwards (dmlc/ps-lite, Van::ProcessAddNodeCommandAtScheduler). So each process gets an
address and a port of its own before it starts, and the rank that follows from them.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence


class Endpoint(NamedTuple):
    """Where a process listens: an IPv4 address of its host, and a free port there."""

    address: str
    port: int


def local_rank(endpoint: Endpoint, endpoints: Sequence[Endpoint]) -> int:
    """Returns which process of its host has an endpoint, from 0 in the order of ranks, among those
    of a role."""
    here = (other.port for other in endpoints if other.address == endpoint.address)
    return sum(port < endpoint.port for port in here)


def ranked(endpoints: Sequence[Endpoint]) -> list[tuple[int, Endpoint]]:
    """Returns the rank and the endpoint of each process of a role, as they are planned.

    Processes of one host swap ports, so that they keep their order.
    """
    by_port = sorted(endpoints, key=lambda endpoint: endpoint.port)
    by_rank = sorted(by_port, key=lambda endpoint: endpoint.address, reverse=True)
    indices = sorted(
        range(len(endpoints)), key=lambda index: endpoints[index].address, reverse=True
    )
    ranks = {index: rank for rank, index in enumerate(indices)}
    return [(ranks[index], by_rank[ranks[index]]) for index in range(len(endpoints))]
