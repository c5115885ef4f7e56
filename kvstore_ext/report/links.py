"""How much each process's link carries each way, by samples of 10 ms as in P3's figures 8 and 9.

Most processes of a job have a link of their own, to all others. Where several share a host, what
they send each other does not pass that host's card: `by_host` leaves it out.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

import numpy as np

from ..trace.reading import JobTrace
from .moments import Names
from .spans import union, until
from .transfers import Transfers, all_transfers

SAMPLE = 10_000_000  # nanoseconds
_BUSY_ENOUGH = 0.2  # of a sample, for the rate in it to tell what the link can carry
_PERCENTILE = 98  # of such rates: single samples may be wrong by a part that was late


@dataclass(frozen=True)
class End:
    """A link's end at a process or host, one way.

    Attributes
    ----------
    name
        "worker 0", or a host's.
    sends
        Or receives.
    rates
        Gbit/s in samples of 10 ms from the report's first step on, shape (n,).
    carried
        Gbit/s in the mean over the counted steps.
    at_work
        Share of the counted steps' time in which something was on its way, or queued for it.
    under_way
        Gbit/s while something was on its way.
    """

    name: str
    sends: bool
    rates: np.ndarray
    carried: float
    at_work: float
    under_way: float

    @property
    def way(self) -> str:
        """As a past participle: "sent" or "received"."""
        return "sent" if self.sends else "received"


@dataclass(frozen=True)
class Links:
    """The ends of all links, each way.

    Attributes
    ----------
    begin
        When the samples begin, nanoseconds.
    counts
        Which samples lie in steps that count, shape (n,).
    processes, hosts
        Ends of processes, and of hosts where the job has several.
    gigabits
        What a link can carry each way, Gbit/s; 0 where nothing was carried.
    given
        Whether the user has said that; else it is the most that one was seen to carry.
    """

    begin: int
    counts: np.ndarray
    processes: Tuple[End, ...]
    hosts: Tuple[End, ...]
    gigabits: float
    given: bool

    def share(self, end: End) -> float:
        """Of what a link can carry, how much this one did."""
        return end.carried / self.gigabits if self.gigabits else 0.0

    def full(self, end: End) -> float:
        """Share of samples that count in which it carried at least 80 % of that."""
        if not self.gigabits or not self.counts.any():
            return 0.0
        return float(np.mean(end.rates[self.counts] >= 0.8 * self.gigabits))

    def of(self, name: str, sends: bool) -> Optional[End]:
        """That of a process."""
        for end in self.processes:
            if (end.name, end.sends) == (name, sends):
                return end
        return None


def links_of(
    job: JobTrace, names: Names, counted: np.ndarray, gigabits: Optional[float] = None
) -> Links:
    """Of all processes.

    Parameters
    ----------
    job, names
        The trace, and its names.
    counted
        The time that counts, as spans that do not touch, nanoseconds, shape (n, 2).
    gigabits
        What a link can carry each way, Gbit/s, where that is known.
    """
    transfers = list(all_transfers(job, names))
    samples = _Samples(counted)
    of_process = {process.name: process.name for process in job.processes}
    of_host = {process.name: process.host for process in job.processes}
    processes = tuple(_ends(transfers, of_process, samples))
    several = len(set(of_host.values())) > 1
    hosts = tuple(_ends(transfers, of_host, samples)) if several else ()
    seen = _most(transfers, of_host if several else of_process, samples) or max(
        (end.under_way for end in hosts or processes), default=0.0
    )
    most, given = gigabits or seen, gigabits is not None
    return Links(samples.begin, samples.counts, processes, hosts, most, given)


class _Samples:
    """The grid of samples, and which of them count."""

    def __init__(self, counted: np.ndarray) -> None:
        self.counted = counted
        self.begin = int(counted[0, 0]) if len(counted) else 0
        length = counted[-1, 1] - self.begin if len(counted) else 0
        self.edges = self.begin + SAMPLE * np.arange(int(np.ceil(length / SAMPLE)) + 1)
        middles = self.edges[:-1] + SAMPLE // 2
        place = np.searchsorted(counted[:, 0], middles, side="right") - 1
        self.counts = (place >= 0) & (middles < counted[np.maximum(place, 0), 1])

    @property
    def seconds(self) -> float:
        """Of the time that counts."""
        return float(np.sum(self.counted[:, 1] - self.counted[:, 0])) / 1e9

    def within(self, spans: np.ndarray) -> float:
        """Seconds of these spans, which do not overlap, that count."""
        inside = until(spans, self.counted[:, 1]) - until(spans, self.counted[:, 0])
        return float(np.sum(inside)) / 1e9


def _ends(
    transfers: List[Transfers], groups: Dict[str, str], samples: _Samples
) -> Iterator[End]:
    for (name, sends), own in _by_end(transfers, groups).items():
        yield _end(name, sends, own, samples)


def _by_end(
    transfers: List[Transfers], groups: Dict[str, str]
) -> Dict[Tuple[str, bool], List[Transfers]]:
    """What goes out of each group, and comes into it."""
    found: Dict[Tuple[str, bool], List[Transfers]] = {
        (name, sends): [] for name in dict.fromkeys(groups.values()) for sends in (True, False)
    }
    for one in transfers:
        sender, receiver = groups[one.sender], groups[one.receiver]
        if sender != receiver:
            found[sender, True].append(one)
            found[receiver, False].append(one)
    return found


def _end(name: str, sends: bool, own: List[Transfers], samples: _Samples) -> End:
    gigabits = _bytes_at(own, samples.edges)
    rates = np.diff(gigabits) * 8 / SAMPLE  # bytes a nanosecond are Gbyte/s
    carried = sum(_bytes_at(own, samples.counted[:, 1]) - _bytes_at(own, samples.counted[:, 0]))
    going = _joined(own, waiting=False)
    at_work = samples.within(_joined(own, waiting=True))
    seconds, under_way = samples.seconds, samples.within(going)
    return End(
        name,
        sends,
        rates,
        carried=8e-9 * float(carried) / seconds if seconds else 0.0,
        at_work=at_work / seconds if seconds else 0.0,
        under_way=8e-9 * float(carried) / under_way if under_way else 0.0,
    )


def _bytes_at(transfers: List[Transfers], times: np.ndarray) -> np.ndarray:
    """How many bytes had come until these times; a part's come evenly. Shape of `times`."""
    total = np.zeros(len(times))
    for one in transfers:
        if len(one.ends):
            so_far = np.cumsum(one.bytes)
            marks = np.column_stack((one.begins, one.ends)).ravel()
            steps = np.column_stack((so_far - one.bytes, so_far)).ravel()
            total += np.interp(times, marks, steps, left=0.0)
    return total


def _joined(transfers: List[Transfers], waiting: bool) -> np.ndarray:
    """When something was under way, or also when something waited for it, as spans."""
    if not transfers:
        return np.zeros((0, 2))
    begins = [one.waiting if waiting else one.begins for one in transfers]
    return union(np.concatenate(begins), np.concatenate([one.ends for one in transfers]))


def _most(transfers: List[Transfers], groups: Dict[str, str], samples: _Samples) -> float:
    """The most that an end carried while something was under way, Gbit/s."""
    most = 0.0
    for own in _by_end(transfers, groups).values():
        carried = np.diff(_bytes_at(own, samples.edges)) * 8
        busy = np.diff(until(_joined(own, waiting=False), samples.edges))
        tells = samples.counts & (busy > _BUSY_ENOUGH * SAMPLE)
        if tells.any():
            most = max(most, float(np.percentile(carried[tells] / busy[tells], _PERCENTILE)))
    return most
