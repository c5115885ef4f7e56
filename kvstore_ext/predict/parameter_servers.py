"""Workers push gradients to servers, which add them up and send back: the lane, and MXNet's own."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Protocol, Sequence, Tuple

from .costs import FREE, Costs
from .placement import Placement
from .queues import LaneQueue
from .shares import Share
from .stock_p3 import SharedQueue
from .streams import Stream
from .topology import Topology
from .windows import FIRST_WINDOW, PartsAtATime
from .wires import Connection
from .worker import Worker


class Queue(Protocol):
    """What sends messages to one peer."""

    def send(self, size: int, priority: int, then: Any, argument: Any) -> None:
        """Sends a message of so many bytes, lower priorities first."""


@dataclass(frozen=True)
class Rules:
    """What a store's messages are like.

    Parameters
    ----------
    placement : list
        Of each key: servers and elements.
    there, back : float
        Bytes of an element on its way to a server, and of its sum.
    queue : str
        "lane": each peer's, by priorities, in a window. "first": as they come. "shared": stock
        P3's.
    window : PartsAtATime
        Of the lane.
    priorities : bool
        The first layers' keys first; otherwise as gradients become ready.
    back_by_priority : bool
        Servers' messages too.
    header : int
        Bytes of a message beside its payload.
    costs : Costs
    wake : float
        Seconds by which a thread comes late to what it is told.
    answers : int
        How many times a key's worker waits for an answer before it sends: a shared scaler's.
    unlike : float
        Without a window of the store's own, connections do not get equal shares of a wire: by how
        much the logarithms of the shares deviate.
    draw : int
        Which of many such shares they get.
    """

    placement: Placement
    there: float = 4.0
    back: float = 4.0
    queue: str = "lane"
    window: PartsAtATime = FIRST_WINDOW
    priorities: bool = True
    back_by_priority: bool = True
    header: int = 130
    costs: Costs = FREE
    wake: float = 0.0
    answers: int = 0
    unlike: float = 0.0
    draw: int = 0


class _Slice(NamedTuple):
    """A part of a key on a server."""

    key: int
    number: int
    elements: int
    server: int


class ParameterServers:
    """All workers' and servers' exchange of gradients."""

    def __init__(self, topology: Topology, rules: Rules) -> None:
        self._rules, self._topology = rules, topology
        self._events = topology.workers[0].sender.events
        self._slices = [
            [_Slice(key, number, elements, server) for number, (server, elements) in enumerate(cut)]
            for key, cut in enumerate(rules.placement)
        ]
        self._workers: List[Worker] = []
        self._there: List[List[Queue]] = []
        self._back: List[List[Queue]] = []
        self._connect()
        self._all = sum(own.count for own in topology.classes)
        self._summed: Dict[Tuple[int, int], int] = {}  # workers, by key and slice
        self._missing: List[Dict[int, int]] = [{} for _ in topology.classes]  # slices, by key
        self._marks = 0  # of the first worker's, that the window knows of
        most = max(rules.there, rules.back)  # of both ways
        self._sent = sum(most * each.elements for cut in self._slices for each in cut)

    def begin(self, workers: Sequence[Worker]) -> None:
        """Has the workers, one of each class, begin."""
        self._workers = list(workers)
        for worker in workers:
            worker.begin(self)

    def ready(self, worker: Worker, key: int) -> None:
        """A worker has a key's gradient, which it encodes and pushes."""
        number = self._workers.index(worker)
        if number == 0:
            self._follow(worker)
        slices, rules = self._slices[key], self._rules
        self._missing[number][key] = len(slices)
        later = rules.answers * (2 * self._topology.delay + 2 * rules.wake)
        if later:
            self._events.at(self._events.now + later, self._encode, (number, slices))
        else:
            self._encode((number, slices))

    def _follow(self, worker: Worker) -> None:
        """Tells the window of an iteration that has ended, at the next one's first gradient."""
        marks = worker.marks
        if len(marks) > max(1, self._marks):
            self._marks = len(marks)
            self._rules.window.iterated(1 - worker.compute / (marks[-1] - marks[-2]), self._sent)

    def _encode(self, which: Tuple[int, List[_Slice]]) -> None:
        number, slices = which
        costs, worker = self._rules.costs, self._topology.workers[number]
        times = self._topology.at_once(number)
        for each in slices:
            message = costs.of_message(each.elements * self._rules.there)
            seconds = costs.encode * each.elements + message
            worker.processors.do(times * seconds, self._push, (number, each))

    def _push(self, which: Tuple[int, _Slice]) -> None:
        number, each = which
        rules = self._rules
        size = int(each.elements * rules.there) + rules.header
        priority = each.key if rules.priorities else 0
        self._there[number][each.server].send(size, priority, self._received, which)

    def _received(self, which: Tuple[int, _Slice]) -> None:
        number, each = which
        costs, count = self._rules.costs, self._topology.classes[number].count
        size = each.elements * self._rules.there
        seconds = costs.of_message(size) + costs.byte * size + costs.add * each.elements
        self._topology.servers[each.server].processors.do(count * seconds, self._add, which)

    def _add(self, which: Tuple[int, _Slice]) -> None:
        number, each = which
        place = (each.key, each.number)
        summed = self._summed.get(place, 0) + self._topology.classes[number].count
        if summed < self._all:
            self._summed[place] = summed
            return
        self._summed[place] = 0
        costs = self._rules.costs
        messages = self._all * costs.of_message(each.elements * self._rules.back)
        seconds = (costs.update + costs.encode_sum) * each.elements + messages
        self._topology.servers[each.server].processors.do(seconds, self._answer, each)

    def _answer(self, each: _Slice) -> None:
        rules = self._rules
        size = int(each.elements * rules.back) + rules.header
        priority = each.key if rules.priorities and rules.back_by_priority else 0
        for number, queues in enumerate(self._back):
            queues[each.server].send(size, priority, self._returned, (number, each))

    def _returned(self, which: Tuple[int, _Slice]) -> None:
        number, each = which
        costs = self._rules.costs
        size = each.elements * self._rules.back
        seconds = costs.of_message(size) + costs.byte * size + costs.decode * each.elements
        topology = self._topology
        processors = topology.workers[number].processors
        processors.do(topology.at_once(number) * seconds, self._written, which)

    def _written(self, which: Tuple[int, _Slice]) -> None:
        number, each = which
        missing = self._missing[number]
        missing[each.key] -= 1
        if not missing[each.key]:
            self._workers[number].arrived(each.key)

    def _connect(self) -> None:
        topology = self._topology
        pushes = [self._queues() for _ in topology.workers]
        answers = [self._queues() for _ in topology.servers]
        for number in range(len(topology.classes)):
            pairs = [topology.connect(number, server) for server in range(len(topology.servers))]
            shares = [self._shares(number, rank) for rank in range(len(pairs))]
            self._there.append([
                pushes[number].to(there, own) for (there, _), (own, _) in zip(pairs, shares)
            ])
            self._back.append([
                queues.to(back, own) for queues, (_, back), (_, own) in zip(answers, pairs, shares)
            ])

    def _shares(self, number: int, rank: int) -> List[Share]:
        """Of a class of workers' connection to a server, and of that back."""
        rules = self._rules
        return [Share(rules.unlike, rules.draw, number, rank, way) for way in range(2)]

    def _queues(self) -> Any:
        rules = self._rules
        if rules.queue == "shared":
            return SharedQueue(self._events)
        return _Lanes(rules.window, rules.wake) if rules.queue == "lane" else _Streams()


class _Lanes:
    """A process's queues, one for each peer."""

    def __init__(self, window: PartsAtATime, wake: float) -> None:
        self._window, self._wake = window, wake

    def to(self, connection: Connection, _share: Share) -> Queue:
        return LaneQueue(connection, self._window, self._wake)


class _Streams:
    """A process's connections, which send what they are given in its order."""

    def to(self, connection: Connection, share: Share) -> Queue:
        return Stream(connection, share)
