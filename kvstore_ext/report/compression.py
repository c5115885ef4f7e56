"""What each way to send gradients cost, and how many bytes it saved."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Dict, List, Set, Tuple

import numpy as np

from ..trace.events import Kind, Message
from ..trace.reading import JobTrace, ProcessTrace
from .moments import Moments, Names
from .spans import places_in
from .steps import Steps

# As csrc/keys/slice_declaration.h has them.
_NO_CODEC = ("", "skip_non_finite")
_BROADCAST = "broadcast"


@dataclass(frozen=True)
class MethodCost:
    """What the keys of one method cost and saved; all of one worker, or of all servers, a step.

    Attributes
    ----------
    method
        As the keys' codec names itself; "" for plain numbers.
    keys
        How many have it.
    plain_bytes
        Bytes that its gradients have as numbers; its results have as many.
    pushed_bytes, result_bytes
        Bytes that travelled each way; results' are nan where not all servers have left a trace.
    spared_bytes
        By how many fewer a host's link has carried, of the host and the way that were spared most;
        of one host alone, what a worker's link would have been.
    encoding, decoding
        Seconds of workers' processors.
    agreeing
        Seconds, added up over keys, in which workers agreed on scalers.
    serving
        Seconds of servers' processors to add up and to encode sums, of all servers together.
    """

    method: str
    keys: int
    plain_bytes: float
    pushed_bytes: float
    result_bytes: float
    spared_bytes: float
    encoding: float
    decoding: float
    agreeing: float
    serving: float

    @property
    def name(self) -> str:
        """The method's name, without its options."""
        return self.method.split(" ")[0] or "plain numbers"

    @property
    def is_plain(self) -> bool:
        """Whether its numbers travel as they are."""
        return self.method in _NO_CODEC

    @property
    def cost(self) -> float:
        """Seconds of a worker's processor in a step."""
        return self.encoding + self.decoding

    def saved_seconds(self, gigabits: float) -> float:
        """Seconds that the bytes which did not travel would have taken in a step: all links carry
        at the same time, both ways. nan where nobody knows what a link carries."""
        return 8e-9 * self.spared_bytes / gigabits if gigabits else float("nan")


def costs_of(
    job: JobTrace, names: Names, steps: List[Steps], counted: np.ndarray
) -> List[MethodCost]:
    """Of each method that the job's keys with gradients have, the one with most bytes first;
    `counted` as in links.py."""
    methods: Dict[str, Set[int]] = {}
    for key, info in job.keys.items():
        if info.method != _BROADCAST:
            methods.setdefault(info.method, set()).add(key)
    if not any(len(own.numbers) for own in steps):
        return []
    found = [_cost(job, names, steps, counted, *one) for one in methods.items()]
    return sorted((cost for cost in found if cost.plain_bytes), key=lambda cost: -cost.plain_bytes)


def _cost(
    job: JobTrace,
    names: Names,
    steps: List[Steps],
    counted: np.ndarray,
    method: str,
    keys: Set[int],
) -> MethodCost:
    chosen = np.array(sorted(keys), "<u8")
    servers = [_of(server, chosen) for server in job.servers]
    answers = [_kind(server, Kind.ANSWERED) for server in servers]
    plain = pushed = encoding = decoding = agreeing = 0.0
    having = {part.server for key in keys for part in job.keys[key].slices}
    all_known = bool(servers) and having <= {server.rank for server in job.servers}
    results = 0.0 if all_known else float("nan")
    for worker, mine in zip(job.workers, steps):
        events = _of(worker, chosen)
        own = events[mine.of(events["end"]) >= 0]
        plain += float(job.plain_bytes(_gradients(_kind(own, Kind.READY))).sum())
        pushed += _bytes(_gradients(_kind(own, Kind.QUEUED)))
        prepared, agreed = _prepared(names, own, events)
        encoding += _seconds(_kind(own, Kind.ENCODED)) + prepared
        agreeing += agreed
        decoding += _seconds(_kind(own, Kind.WRITTEN))
        for answered in answers:
            told = answered[answered["peer"] == worker.rank]
            results += _bytes(told[mine.of(told["end"]) >= 0])
    serving = 0.0
    for server in servers:
        own = server[places_in(counted, server["end"]) >= 0]
        serving += _seconds(_kind(own, Kind.SUMMED)) + _seconds(_kind(own, Kind.ENCODED))
    counted_steps = [len(mine.numbers) for mine in steps]
    count = sum(counted_steps)
    a_step = count / max(1, sum(own > 0 for own in counted_steps))
    spared = _spared(job, (plain - pushed) / count, (plain - results) / count)
    return MethodCost(
        method, len(keys), plain / count, pushed / count, results / count, spared,
        encoding / count, decoding / count, agreeing / count, serving / a_step,
    )  # fmt: skip


def _spared(job: JobTrace, there: float, back: float) -> float:
    """The bytes that the busiest way of a host's link is spared, where each worker's pushes are
    fewer by so many, and so are its results. A host's processes share its link, and what they send
    each other does not travel. Where it is not known by how much results are fewer, `back` is nan
    and pushes alone count."""
    if np.isnan(back):
        return there
    workers = Counter(worker.host for worker in job.workers)
    servers = Counter(server.host for server in job.servers)
    if len(set(workers) | set(servers)) == 1:
        return max(there, back)
    ways: List[float] = []
    for host in set(workers) | set(servers):
        beside, share = workers[host], servers[host] / len(job.servers)
        ours, theirs = beside * (1 - share), (len(job.workers) - beside) * share
        ways += [ours * there + theirs * back, ours * back + theirs * there]
    return max(ways)


def _prepared(names: Names, own: np.ndarray, events: np.ndarray) -> Tuple[float, float]:
    """Seconds in which gradients were looked at, and in which workers agreed on scalers, in events
    that count; among all events are the beginnings of those.

    Whose thread goes on at once has agreed with nobody.
    """
    prepared = _kind(own, Kind.PREPARED)
    ready = Moments(names, _gradients(_kind(events, Kind.READY)))
    if not len(ready.rows):
        return _seconds(prepared), 0.0
    alone = ready.thread(names.of(prepared["key"], prepared["round"])) == prepared["thread"]
    return _seconds(prepared[alone]), _seconds(prepared[~alone])


def _of(process: ProcessTrace, keys: np.ndarray) -> np.ndarray:
    """What became of these keys' rounds: each key counts its own, so steps are found by time."""
    events = process.events
    return events[(events["round"] > 0) & np.isin(events["key"], keys)]


def _kind(events: np.ndarray, kind: Kind) -> np.ndarray:
    return events[events["kind"] == kind]


def _gradients(events: np.ndarray) -> np.ndarray:
    return events[events["message"] == Message.PUSH]


def _bytes(events: np.ndarray) -> float:
    return float(events["bytes"].astype(float).sum())


def _seconds(events: np.ndarray) -> float:
    return float((events["end"] - events["begin"]).sum()) / 1e9
