"""When each part of a slice was on its way from one process to another.

A part is on its way from when it left until it has come, and one after the other: ZeroMQ keeps them
in order. Those of a slice are matched at both ends by their place in it.
"""
from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Tuple

import numpy as np

from ..trace.events import EVENT, NO_PEER, Kind, Message
from ..trace.reading import JobTrace, ProcessTrace
from .moments import Names

_CARRIED = (Message.INIT, Message.PUSH, Message.RESULT, Message.METHOD)
_MOST_PARTS = 1 << 12  # of a slice, one after the other


class Transfers(NamedTuple):
    """Parts that went from one process to another, in the order in which they came.

    Attributes
    ----------
    sender, receiver
        Names, such as "worker 0".
    begins, ends
        Nanoseconds: when a part left, or had the wire for itself, and when it had come. Shape (n,).
    bytes
        Shape (n,).
    waiting
        When the slice was handed to the sender's link, nanoseconds, shape (n,).
    """

    sender: str
    receiver: str
    begins: np.ndarray
    ends: np.ndarray
    bytes: np.ndarray
    waiting: np.ndarray


def all_transfers(job: JobTrace, names: Names) -> Iterator[Transfers]:
    """Of each worker to each server, and back."""
    servers = [_End(server) for server in job.servers]
    for worker in map(_End, job.workers):
        for server in servers:
            yield _transfers(names, worker, server)
            yield _transfers(names, server, worker)


class _End:
    """What a process has handed on, sent and received, by peer."""

    def __init__(self, process: ProcessTrace) -> None:
        self.name, self.rank = process.name, process.rank
        self.received = _by_peer(_parts(process, Kind.RECEIVED))
        self.sent = _by_peer(_parts(process, Kind.SENT))
        self.queued = _by_peer(process.of_kind(Kind.QUEUED, Kind.ANSWERED))


def _by_peer(events: np.ndarray) -> Dict[int, np.ndarray]:
    """Events of each peer, in their order."""
    ordered = events[np.argsort(events["peer"], kind="stable")]
    peers, begins = np.unique(ordered["peer"], return_index=True)
    return dict(zip(map(int, peers), np.split(ordered, begins[1:])))


def _transfers(names: Names, sender: _End, receiver: _End) -> Transfers:
    nothing = np.zeros(0, EVENT)
    received = receiver.received.get(sender.rank, nothing)
    sent = sender.sent.get(receiver.rank, nothing)
    queued = sender.queued.get(receiver.rank, nothing)
    ends = received["end"].astype(np.int64)
    left = _matching(names, received, sent, np.minimum(ends, received["begin"]))
    first = queued[np.argsort(queued["begin"], kind="stable")]
    waiting = _matching(names, received, first, left, repeats=True)
    # A part has the wire for itself once the one before has come.
    before = np.append(ends[:1] - 1, ends[:-1]) if len(ends) else ends
    begins = np.minimum(np.maximum(left, before), ends)
    if len(ends):
        begins[0] = min(left[0], ends[0])
    return Transfers(sender.name, receiver.name, begins, ends, received["bytes"].astype(float),
                     np.minimum(waiting, begins))  # fmt: skip


def _parts(process: ProcessTrace, kind: Kind) -> np.ndarray:
    events = process.of_kind(kind)
    events = events[np.isin(events["message"], [int(message) for message in _CARRIED])]
    return events[np.argsort(events["end"], kind="stable")]


def _matching(
    names: Names,
    wanted: np.ndarray,
    events: np.ndarray,
    otherwise: np.ndarray,
    repeats: bool = False,
) -> np.ndarray:
    """When the event of the same slice and part was, nanoseconds, shape of `wanted`.

    The parts of a slice leave and come in one order; with `repeats` there is one event of them all.
    """
    here, there = _numbered(names, wanted, repeats), _numbered(names, events, repeats)
    order = np.lexsort((there[1], there[0]))
    keys = there[0][order] * _MOST_PARTS + there[1][order]
    if not len(keys):
        return otherwise
    asked = here[0] * _MOST_PARTS + here[1]
    place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    times = events["begin"][order][place].astype(np.int64)
    return np.where((keys[place] == asked) & (times <= otherwise), times, otherwise)


def _numbered(names: Names, events: np.ndarray, repeats: bool) -> Tuple[np.ndarray, np.ndarray]:
    """Names of slices, and how many parts of each came before."""
    found = names.of(events["key"], events["round"], events["slice"], NO_PEER)
    if repeats:
        return found, np.zeros(len(found), np.int64)
    order = np.argsort(found, kind="stable")
    new = np.append(True, found[order][1:] != found[order][:-1])[: len(found)]
    firsts = np.maximum.accumulate(np.where(new, np.arange(len(found)), 0))
    numbers = np.empty(len(found), np.int64)
    numbers[order] = np.arange(len(found)) - firsts
    return found, np.minimum(numbers, _MOST_PARTS - 1)
