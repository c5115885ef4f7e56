"""Traces of jobs that never ran, whose times follow from a few numbers.

Every step, a worker computes the layers of the forward pass, each as soon as the result of its key
is there, and then those of the backward pass. A link carries slice after slice, in the order in
which they come. All times are milliseconds.
"""
from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Dict, List, Mapping, Sequence, Tuple

import numpy as np
from kvstore_ext.trace.clocks import Clock
from kvstore_ext.trace.events import EVENT, WHOLE_KEY, Kind, Message
from kvstore_ext.trace.reading import JobTrace, KeyInfo, ProcessTrace, SliceInfo

MS = 1_000_000  # nanoseconds
WORKER, SERVER = "worker", "server"
Time = float


@dataclass(frozen=True)
class Key:
    """A layer's only parameter: one slice on one server."""

    name: str
    server: int = 0
    bytes: int = 1_000_000
    travels: int = 0  # bytes of its encoding; 0: as many as it has
    method: str = ""
    identity: int = 0


@dataclass(frozen=True)
class Made:
    """A job to be made up; keys stand in the order of the forward pass."""

    keys: Sequence[Key]
    workers: int = 2
    servers: int = 1
    steps: int = 8
    forward: Time = 2.0  # of each layer
    backward: Time = 4.0
    slower: Mapping[int, float] = field(default_factory=dict)  # by worker: times all others
    rate: float = 1e6  # bytes a millisecond, of each server's link each way: 8 Gbit/s
    rates: Mapping[int, float] = field(default_factory=dict)  # of some servers
    summing: Time = 0.1
    updating: Time = 0.1
    encoding: Time = 0.0
    agreeing: Time = 0.0  # on a scaler, before encoding, once all gradients are ready
    writing: Time = 0.05
    layers: bool = True
    waits_for_all: bool = False  # gradients are pushed once all are computed
    in_two_calls: bool = False  # the script pushes and pulls apart
    hosts: Sequence[str] = ()

    def trace(self) -> JobTrace:
        """Its trace."""
        return _Making(self).trace()


class _Making:
    def __init__(self, job: Made) -> None:
        self.job = job
        self.keys = [replace(key, identity=100 + place) for place, key in enumerate(job.keys)]
        self.events: Dict[Tuple[str, int], List[tuple]] = {}
        # When each worker may go on, and when each key's result is there.
        self.now = [0.0] * job.workers
        self.done = [{key.identity: 0.0 for key in self.keys} for _ in range(job.workers)]
        self.free: Dict[Tuple[int, bool], Time] = {}  # when a server's link is, by way
        self.ended = [0.0] * job.workers  # the last layer, of either pass

    def trace(self) -> JobTrace:
        begins: List[List[Time]] = [[] for _ in range(self.job.workers)]
        for number in range(1, self.job.steps + 1):
            ready = [self._compute(worker) for worker in range(self.job.workers)]
            for worker, times in enumerate(ready):
                begins[worker].append(min(times.values()))
                if number > 1:
                    self._add(WORKER, worker, Kind.STEP, begins[worker][-2], begins[worker][-1],
                              round=number - 1)  # fmt: skip
            self._exchange(number, ready)
        hosts = self.job.hosts or ["here"] * (self.job.workers + self.job.servers)
        names = [(WORKER, rank) for rank in range(self.job.workers)]
        names += [(SERVER, rank) for rank in range(self.job.servers)]
        processes = [
            ProcessTrace(role, rank, host, 1, self._events(role, rank), Clock("one"),
                         layers=tuple(key.name for key in self.keys) if role == WORKER else ())
            for (role, rank), host in zip(names, hosts)
        ]  # fmt: skip
        return JobTrace(tuple(processes), {key.identity: _info(key) for key in self.keys})

    def _compute(self, worker: int) -> Dict[int, Time]:
        """A forward and a backward pass; returns when each gradient was ready."""
        job, times = self.job, self.job.slower.get(worker, 1.0)
        for place, key in enumerate(self.keys):
            begin = max(self.now[worker], self.done[worker][key.identity])
            self._layer(worker, Kind.FORWARD, place, begin + job.forward * times)
        ready = {}
        for place, key in reversed(list(enumerate(self.keys))):
            self._layer(worker, Kind.BACKWARD, place, self.now[worker] + job.backward * times)
            ready[key.identity] = self.now[worker]
        if job.waits_for_all:
            ready = dict.fromkeys(ready, self.now[worker])
        return ready

    def _layer(self, worker: int, kind: Kind, place: int, end: Time) -> None:
        if self.job.layers:
            self._add(WORKER, worker, kind, self.ended[worker], end, key=place)
        self.now[worker] = self.ended[worker] = end

    def _exchange(self, number: int, ready: List[Dict[int, Time]]) -> None:
        come: Dict[int, Dict[int, Time]] = {key.identity: {} for key in self.keys}
        order = []
        for worker in range(self.job.workers):
            for key in self.keys:
                begun = ready[worker][key.identity]
                agreed = max(own[key.identity] for own in ready) + self.job.agreeing
                order.append((agreed if self.job.agreeing else begun, worker, key, begun))
        for agreed, worker, key, begun in sorted(order, key=lambda one: one[:2]):
            come[key.identity][worker] = self._push(number, worker, key, begun, agreed)
        for key in sorted(self.keys, key=lambda key: max(come[key.identity].values())):
            self._answer(number, key, come[key.identity], ready)

    def _push(self, number: int, worker: int, key: Key, begun: Time, agreed: Time) -> Time:
        here = {"key": key.identity, "round": number, "priority": -key.identity,
                "message": Message.PUSH}  # fmt: skip
        whole = {**here, "slice": WHOLE_KEY}
        asked = begun if self.job.waits_for_all else begun - 1
        self._add(WORKER, worker, Kind.READY, asked, begun, bytes=key.bytes, **whole)
        thread = 2 if self.job.agreeing else 1  # that which got the answer
        self._add(WORKER, worker, Kind.PREPARED, begun, agreed, thread=thread, **whole)
        encoded = agreed + self.job.encoding
        part = {**here, "slice": 0, "peer": key.server, "bytes": key.travels or key.bytes}
        self._add(WORKER, worker, Kind.ENCODED, agreed, encoded, **part)
        self._add(WORKER, worker, Kind.QUEUED, encoded, encoded, **part)
        left, arrived = self._carry(key, encoded, False)
        self._add(WORKER, worker, Kind.SENT, left, left, **part)
        part["peer"] = worker
        self._add(SERVER, key.server, Kind.RECEIVED, arrived, arrived, **part)
        return arrived

    def _answer(
        self, number: int, key: Key, come: Dict[int, Time], ready: List[Dict[int, Time]]
    ) -> None:
        job = self.job
        here = {"key": key.identity, "round": number, "slice": 0, "bytes": key.travels or key.bytes,
                "message": Message.RESULT, "priority": -key.identity}  # fmt: skip
        for worker, arrived in come.items():
            pushed = {**here, "message": Message.PUSH, "peer": worker}
            self._add(SERVER, key.server, Kind.SUMMED, arrived, arrived + job.summing, **pushed)
        summed = max(come.values()) + job.summing
        answered = summed + job.updating
        self._add(SERVER, key.server, Kind.UPDATED, summed, answered, **here)
        for worker in range(job.workers):
            self._add(SERVER, key.server, Kind.ANSWERED, answered, answered, **here, peer=worker)
            left, arrived = self._carry(key, answered, True)
            self._add(SERVER, key.server, Kind.SENT, left, left, **here, peer=worker)
            back = {**here, "peer": key.server}
            self._add(WORKER, worker, Kind.RECEIVED, arrived, arrived, **back)
            done = arrived + job.writing
            self._add(WORKER, worker, Kind.WRITTEN, arrived, done, **back)
            whole = {**here, "slice": WHOLE_KEY, "message": Message.PUSH, "bytes": 0}
            pushed = arrived if job.in_two_calls else done
            self._add(WORKER, worker, Kind.DONE, ready[worker][key.identity], pushed, **whole)
            if job.in_two_calls:
                pulled = {**whole, "message": Message.PULL}
                self._add(WORKER, worker, Kind.DONE, arrived, done, **pulled)
            self.done[worker][key.identity] = done

    def _carry(self, key: Key, time: Time, result: bool) -> Tuple[Time, Time]:
        """When a slice leaves and when it has come: a server's link carries one at a time."""
        left = max(time, self.free.get((key.server, result), 0.0))
        rate = self.job.rates.get(key.server, self.job.rate)
        arrived = left + (key.travels or key.bytes) / rate
        self.free[key.server, result] = arrived
        return left, arrived

    def _add(self, role: str, rank: int, kind: Kind, begin: Time, end: Time, **fields: int) -> None:
        here = {"key": 0, "round": 0, "slice": WHOLE_KEY, "bytes": 0, "priority": 0, "peer": -1,
                "message": 0, **fields}  # fmt: skip
        named = {**here, "begin": round(begin * MS), "end": round(end * MS), "kind": kind}
        record = tuple(int(named.get(name, 1)) for name in EVENT.names or ())
        self.events.setdefault((role, rank), []).append(record)

    def _events(self, role: str, rank: int) -> np.ndarray:
        events = np.array(self.events.get((role, rank), []), EVENT)
        return events[np.argsort(events["begin"], kind="stable")]


def _info(key: Key) -> KeyInfo:
    elements = key.bytes // 4
    slices = (SliceInfo(0, key.server, 0, elements),)
    return KeyInfo(key.identity, key.name, "float32", elements, key.method, slices)


def lagging(job: JobTrace, key: int, by: int) -> JobTrace:
    """As if this key had been pushed from so many steps later on, in its own rounds 1, 2 and so
    on."""
    processes = []
    for process in job.processes:
        own = (process.events["key"] == key) & (process.events["round"] > 0)
        kept = ~own | (process.events["round"] > by)
        events = process.events[kept]
        events["round"][own[kept]] -= by
        processes.append(replace(process, events=events))
    return JobTrace(tuple(processes), job.keys)


def idle_workers(job: JobTrace, *ranks: int) -> List[ProcessTrace]:
    """Workers of these ranks that have recorded nothing."""
    return [replace(job.workers[0], rank=rank, events=np.zeros(0, EVENT)) for rank in ranks]


def write(job: JobTrace, directory: Path) -> None:
    """As the processes themselves would have."""
    for process in job.processes:
        file = directory / f"{process.role}-{process.rank}.events"
        count = len(process.events)
        header = struct.pack("<8sIIQQ", b"kvxtrace", 1, EVENT.itemsize, count, count)
        file.write_bytes(header.ljust(4096, b"\0") + process.events.tobytes())
        about = {"role": process.role, "rank": process.rank, "host": process.host, "pid": 1}
        lines: List[dict] = [{"process": {**about, "clock": "one", "options": {}}}]
        for key in job.keys.values() if process.role == WORKER else ():
            cut = [[part.index, part.server, part.offset, part.elements] for part in key.slices]
            lines.append({"key": {**vars(key), "slices": cut}})
        lines += [{"layer": layer} for layer in process.layers] + [{"end": True}]
        file.with_suffix(".json").write_text("".join(json.dumps(line) + "\n" for line in lines))
