"""What a wait was for, by going back from the result that ended it.

The key's last slice is followed back to the worker whose gradient came last of all. What the slice
went through on the way stands one after the other, so each moment of the wait has one cause.
"""
from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Dict, Tuple

import numpy as np

from ..trace.events import Kind, Message
from ..trace.reading import JobTrace, ProcessTrace
from .moments import MISSING, Moments, Names


class Cause(IntEnum):
    """In the order in which a slice goes through them."""

    GRADIENT = 0  # another worker had no gradient yet
    PREPARING = 1  # the worker that came last looked at the gradient, and agreed on its scaler
    ENCODING = 2  # it made the slice ready to travel; the waiting one copied its own from a device
    PUSH = 3  # its link to the server: in the queue, and under way
    SERVER = 4  # the server added up, and updated
    RESULT = 5  # the link from the server: in the queue, and under way
    WRITING = 6  # the waiting worker decoded the result, and wrote it
    UNSEEN = 7  # some process or event of these is not in the trace


@dataclass(frozen=True)
class Causes:
    """What each of n waits was for.

    Attributes
    ----------
    waits
        Records of `WAIT`, shape (n,).
    seconds
        By wait and `Cause`, shape (n, 8).
    last_workers
        The worker whose slice came last, shape (n,); -1 where that is not known.
    late_workers
        The worker whose gradient was ready last, of those for which the slice waited, shape (n,).
        Where all agree on a scaler that need not be the one whose slice came last.
    servers
        Where the slice was added up, shape (n,); -1 where that is not known.
    """

    waits: np.ndarray
    seconds: np.ndarray
    last_workers: np.ndarray
    late_workers: np.ndarray
    servers: np.ndarray

    @property
    def total(self) -> float:
        """Seconds of all waits."""
        return float(self.seconds.sum())

    def by_cause(self) -> np.ndarray:
        """Seconds by `Cause`, shape (8,)."""
        return self.seconds.sum(axis=0)

    def by_link(self) -> Dict[Tuple[int, int, Cause], float]:
        """Seconds by worker's rank, server's rank and way: PUSH or RESULT."""
        found: Dict[Tuple[int, int, Cause], float] = {}
        ways = ((Cause.PUSH, self.last_workers), (Cause.RESULT, self.waits["worker"]))
        for way, workers in ways:
            for worker, server, seconds in zip(workers, self.servers, self.seconds[:, way]):
                if seconds > 0:
                    name = (int(worker), int(server), way)
                    found[name] = found.get(name, 0.0) + float(seconds)
        return found

    def by_server(self) -> Dict[int, float]:
        """Seconds in which a server added up or updated, by its rank."""
        return _sums(self.servers, self.seconds[:, Cause.SERVER])

    def by_late_worker(self) -> Dict[int, float]:
        """Seconds in which others waited for a worker's gradient, by its rank."""
        return _sums(self.late_workers, self.seconds[:, Cause.GRADIENT])

    def by_key(self) -> Dict[int, float]:
        """Seconds by the key that was waited for."""
        return _sums(self.waits["key"], self.seconds.sum(axis=1))


def _sums(names: np.ndarray, seconds: np.ndarray) -> Dict[int, float]:
    unique, places = np.unique(names, return_inverse=True)
    sums = np.bincount(places, seconds, minlength=len(unique))
    return {int(name): float(total) for name, total in zip(unique, sums) if total > 0}


def causes_of(job: JobTrace, names: Names, waits: np.ndarray) -> Causes:
    """Of waits of any workers: records of `WAIT`, shape (n,), whose order may change."""
    chain = _Chain(job, names)
    parts = [chain.of(waits[waits["worker"] == worker.rank]) for worker in job.workers]
    return Causes(
        np.concatenate([part.waits for part in parts]) if parts else waits,
        np.concatenate([part.seconds for part in parts]) if parts else np.zeros((0, len(Cause))),
        np.concatenate([part.last_workers for part in parts]) if parts else np.zeros(0, int),
        np.concatenate([part.late_workers for part in parts]) if parts else np.zeros(0, int),
        np.concatenate([part.servers for part in parts]) if parts else np.zeros(0, int),
    )


class _Seen:
    """A process's events, by name, as they are needed."""

    def __init__(self, names: Names, process: ProcessTrace) -> None:
        self._names = names
        self._process = process
        pushes = process.of_kind(Kind.RECEIVED)
        pushes = pushes[pushes["message"] == Message.PUSH]
        self.pushing = {int(peer) for peer in np.unique(pushes["peer"])}  # workers, at a server
        self._moments: Dict[Tuple[Kind, int], Moments] = {}

    def __call__(self, kind: Kind, message: int = 0) -> Moments:
        if (kind, message) not in self._moments:
            events = self._process.of_kind(kind)
            if message:
                events = events[events["message"] == message]
            by_peer = kind in (Kind.SENT, Kind.RECEIVED, Kind.ANSWERED, Kind.SUMMED)
            self._moments[kind, message] = Moments(self._names, events, by_peer)
        return self._moments[kind, message]


def _results(worker: ProcessTrace) -> np.ndarray:
    received = worker.of_kind(Kind.RECEIVED)
    return received[received["message"] == Message.RESULT]


def _has_agreed(worker: _Seen, whole: np.ndarray) -> np.ndarray:
    """Whether a worker's gradients went on once all had a scaler in common, shape (n,): then it was
    the thread that hears of that which went on with them."""
    prepared = worker(Kind.PREPARED).thread(whole)
    ready = worker(Kind.READY, Message.PUSH).thread(whole)
    return (prepared != MISSING) & (ready != MISSING) & (prepared != ready)


class _Chain:
    def __init__(self, job: JobTrace, names: Names) -> None:
        self._names = names
        self._workers = [_Seen(names, worker) for worker in job.workers]
        self._ranks = [worker.rank for worker in job.workers]
        self._servers = {server.rank: _Seen(names, server) for server in job.servers}
        self._last_slices = [
            Moments(names, _results(worker), by_slice=False) for worker in job.workers
        ]

    def of(self, waits: np.ndarray) -> Causes:
        """Of waits of one worker."""
        count = len(waits)
        seconds = np.zeros((count, len(Cause)))
        if not count:
            nobody = np.zeros(0, int)
            return Causes(waits, seconds, nobody, nobody, nobody)
        worker = self._ranks.index(int(waits["worker"][0]))
        keys, rounds = waits["key"], waits["round"].astype(np.int64)
        slices, servers = self._last_slice(worker, keys, rounds)
        last, late, times = self._times(worker, keys, rounds, slices, servers)
        seen = (times != MISSING).all(axis=0)
        # Clocks of two hosts may differ by a little: nothing ends before it has begun.
        times = np.maximum.accumulate(times, axis=0)
        bounds = np.clip(times, waits["begin"], waits["end"])
        bounds = np.vstack((waits["begin"], bounds, waits["end"]))
        lengths = np.diff(bounds, axis=0).T / 1e9
        seconds[seen, : Cause.UNSEEN] = lengths[seen]
        # The wait has begun when the waiting worker's gradients were computed.
        own = late == waits["worker"]
        seconds[own, Cause.ENCODING] += seconds[own, Cause.GRADIENT]
        seconds[own, Cause.GRADIENT] = 0
        seconds[~seen, Cause.UNSEEN] = (waits["end"] - waits["begin"])[~seen] / 1e9
        last, late, servers = (np.where(seen, each, -1) for each in (last, late, servers))
        return Causes(waits, seconds, last, late, servers)

    def _last_slice(
        self, worker: int, keys: np.ndarray, rounds: np.ndarray
    ) -> Tuple[np.ndarray, np.ndarray]:
        """The slice that came last, and its server."""
        come = self._last_slices[worker]
        place = come.find(self._names.of(keys, rounds))
        if not len(come.rows):
            return np.full(len(keys), -1), np.full(len(keys), -1)
        rows = come.rows[np.maximum(place, 0)]
        return (np.where(place < 0, -1, rows["slice"].astype(int)),
                np.where(place < 0, -1, rows["peer"].astype(int)))  # fmt: skip

    def _times(
        self,
        worker: int,
        keys: np.ndarray,
        rounds: np.ndarray,
        slices: np.ndarray,
        servers: np.ndarray,
    ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The worker whose slice came last, the one whose gradient did, and by `Cause` when it
        ended, but WRITING: shape (6, n)."""
        count = len(keys)
        times = np.full((Cause.WRITING, count), MISSING)
        last = np.full(count, -1)
        here = self._workers[worker]
        for server, seen in self._servers.items():
            mine = np.flatnonzero(servers == server)
            if not len(mine):
                continue
            at = (keys[mine], rounds[mine], slices[mine])
            last[mine], times[Cause.PUSH, mine] = self._last_push(seen, at)
            back = self._names.of(*at, self._ranks[worker])
            times[Cause.SERVER, mine] = seen(Kind.ANSWERED).begin(back)
        late = last.copy()
        for place, rank in enumerate(self._ranks):
            theirs = np.flatnonzero(last == rank)
            if len(theirs):
                at = (keys[theirs], rounds[theirs], slices[theirs])
                other = self._workers[place]
                whole = self._names.of(keys[theirs], rounds[theirs])
                times[Cause.GRADIENT, theirs] = other(Kind.READY, Message.PUSH).end(whole)
                agreed = theirs[_has_agreed(other, whole)]
                if len(agreed):  # when all gradients were ready
                    ready, latest = self._latest_ready(keys[agreed], rounds[agreed])
                    late[agreed], times[Cause.GRADIENT, agreed] = ready, latest
                times[Cause.PREPARING, theirs] = other(Kind.PREPARED).end(whole)
                queued = other(Kind.QUEUED, Message.PUSH)
                times[Cause.ENCODING, theirs] = queued.begin(self._names.of(*at))
        back = self._names.of(keys, rounds, slices, servers)
        times[Cause.RESULT] = here(Kind.RECEIVED, Message.RESULT).end(back)
        return last, late, times

    def _latest_ready(
        self, keys: np.ndarray, rounds: np.ndarray
    ) -> Tuple[np.ndarray, np.ndarray]:
        """Whose gradient was ready last, and when, of workers whose trace is here."""
        whole = self._names.of(keys, rounds)
        ends = np.stack([each(Kind.READY, Message.PUSH).end(whole) for each in self._workers])
        latest = ends.argmax(axis=0)
        return np.array(self._ranks)[latest], ends.max(axis=0)

    def _last_push(
        self, server: _Seen, at: Tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> Tuple[np.ndarray, np.ndarray]:
        """Whose slice had come last, and when, shape (n,); -1 and MISSING where that is not known.

        A server may have heard workers whose traces are not here; and who is idle pushes nothing.
        """
        received = server(Kind.RECEIVED, Message.PUSH)
        ranks = np.array(sorted(server.pushing | set(self._ranks)))
        come = np.stack([received.end(self._names.of(*at, rank)) for rank in ranks])
        known = (come != MISSING).any(axis=0)
        # Whose gradient was ready has pushed: where the server has not recorded that, another may
        # have been the last.
        whole = self._names.of(at[0], at[1])
        for worker, rank in zip(self._workers, self._ranks):
            pushed = worker(Kind.READY, Message.PUSH).find(whole) >= 0
            known &= ~pushed | (come[ranks == rank][0] != MISSING)
        last = ranks[come.argmax(axis=0)]
        return np.where(known, last, -1), np.where(known, come.max(axis=0), MISSING)
