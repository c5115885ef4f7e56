"""Choosing the core over the whole model, although its parameters lie on several servers.

Servers know only workers, so rank 0 looks for the significance that the core's last parameter has
(Slim-DP, equation 1). A sample of all servers tells it a bracket that has that one nearly for
certain; of the few parameters within it every server counts how many have each upper half of the
significance's bits, then each lower half among those with the upper one that rank 0 found. What is
equal to the last one belongs to the core as far as there is room, in the order of the model.
"""
from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Dict, List, Tuple

import numpy as np

from .. import _core
from ..config import Options
from ..errors import KVStoreError
from ..protocol.question_desk import Answer, QuestionDesk, ServerHalf, server_half
from ..protocol.questions import answers_to, ask

if TYPE_CHECKING:
    from .options import SlimDP

# How many elements have a value, as it travels.
_COUNTED = np.dtype([("value", "<u4"), ("count", "<i8")])

# Seconds that a server waits for a round before it says that it is not complete.
_MOMENT = 0.2

# What the servers are asked.
_STEP = "core selection"
RESUME = "slim_dp slice"


class CoreKeeper:
    """A server's part: answers what rank 0 asks in the course of a selection.

    Called by the threads that answer questions. Of a store rank 0 asks one thing after the other.
    """

    def __init__(self, server: _core.SlimServer) -> None:
        self._server = server
        # By store; an entry is that of the thread that answers the store's last question.
        self._selections: Dict[int, _core.CoreSelection] = {}

    def resume(self, asked: Dict[str, Any], data: bytes) -> Answer:
        """Goes on with a slice as states.py puts it: its parameters, then its cores."""
        key, index, elements = asked["slice"]
        parameters = 4 * elements
        size = -(-elements // 64) * 8
        cores = {
            selection: data[parameters + place * size : parameters + (place + 1) * size]
            for place, selection in enumerate(asked["selections"])
        }
        self._server.resume(key, index, data[:parameters], cores)
        return {}, b""

    def answer(self, asked: Dict[str, Any], _data: bytes) -> Answer:
        """A question has the store, and what one of the steps at the end is called by."""
        for name, step in self._STEPS.items():
            if name in asked:
                return step(self, asked)
        raise LookupError(f"a selection has no step of {', '.join(asked)}")

    def _of(self, asked: Dict[str, Any]) -> _core.CoreSelection:
        return self._selections[asked["store"]]

    def _await_round(self, asked: Dict[str, Any]) -> Answer:
        wanted = (asked["store"], asked["awaited"], asked["slices"])
        return {"complete": self._server.await_round(*wanted, _MOMENT)}, b""

    def _begin(self, asked: Dict[str, Any]) -> Answer:
        wanted = (asked["store"], asked["round"], asked["slices"])
        self._selections[asked["store"]] = self._server.await_selection(*wanted)
        return {}, b""

    def _sum_up(self, asked: Dict[str, Any]) -> Answer:
        sums = self._of(asked).sums()
        return {"sums": [[*name, *both] for name, both in sums.items()]}, b""

    def _sample(self, asked: Dict[str, Any]) -> Answer:
        return {}, self._of(asked).sample(asked["c"], asked["step"]).tobytes()

    def _count_upper(self, asked: Dict[str, Any]) -> Answer:
        selection = self._of(asked)
        above = selection.divide(*asked["bracket"])
        return {"above": above}, _packed(selection.count_upper())

    def _count_lower(self, asked: Dict[str, Any]) -> Answer:
        return {}, _packed(self._of(asked).count_lower(asked["upper"]))

    def _count_equal(self, asked: Dict[str, Any]) -> Answer:
        equal = self._of(asked).count_equal(asked["equal"])
        return {"equal": [[*name, count] for name, count in equal.items() if count]}, b""

    def _choose(self, asked: Dict[str, Any]) -> Answer:
        allowed = {(key, index): count for key, index, count in asked["allowed"]}
        cores = self._of(asked).choose(asked["least"], allowed)
        self._server.set_cores(asked["selection"], cores)
        del self._selections[asked["store"]]
        return {}, b""

    # By what a question has of its own, in the order of a selection.
    _STEPS: ClassVar[Dict[str, Callable[[CoreKeeper, Dict[str, Any]], Answer]]] = {
        "awaited": _await_round,
        "round": _begin,
        "sums": _sum_up,
        "c": _sample,
        "bracket": _count_upper,
        "upper": _count_lower,
        "equal": _count_equal,
        "least": _choose,
    }


@server_half
def make_half(options: Options) -> ServerHalf:
    """Has a server take part in selections, and go on from what another run has saved."""
    slim_server = _core.SlimServer(silence=options.silence, patience=options.longest_wait)
    keeper = CoreKeeper(slim_server)

    def answer_on(_server: _core.Server, desk: QuestionDesk) -> None:
        # It waits for rounds that wait for the answer to another question.
        desk.register(_STEP, keeper.answer, waits=True)
        desk.register(RESUME, keeper.resume)

    return ServerHalf(answer_on, {"slim_dp": slim_server})


class CoreSelector:
    """Rank 0's part, on a thread of its own: one for each selection, or one for all that are due
    while rank 0 is idle, which counts them here. The public calls are the script's thread's.

    Parameters
    ----------
    worker, store
        The lane, and the store's number on it.
    method
        With c and q.
    """

    def __init__(self, worker: _core.Worker, store: int, method: SlimDP) -> None:
        self._worker = worker
        self._store = store
        self._method = method
        self._thread = threading.Thread()
        self._is_idle = False
        self._resumed = threading.Event()
        self._last = -1  # selection; changed by the thread of begin_idle, until that has ended

    def begin(self, selection: int, size: int, keys: List[int]) -> None:
        """Begins a selection of `size` parameters among keys in the model's order, once the last
        one has ended; returns before it has ended. A failure ends the job."""
        self.join()
        self._thread = threading.Thread(
            target=self._run, args=(selection, size, keys), daemon=True, name="core selection"
        )
        self._thread.start()

    def begin_idle(self, chosen: int, size: int, keys: List[int]) -> None:
        """Rounds go on without rank 0 (store.join): makes the selections after the one that was
        begun last, as the rounds that they are made from are complete, until `end_idle`."""
        if self._is_idle:  # joined again, after an interruption
            return
        self.join()
        self._is_idle = True
        self._last = chosen
        self._resumed.clear()
        self._thread = threading.Thread(
            target=self._run_idle, args=(size, keys), daemon=True, name="core selections"
        )
        self._thread.start()

    def end_idle(self) -> int:
        """The last selection that was made, once all are that are due."""
        self.close()
        self._is_idle = False
        return self._last

    def close(self) -> None:
        """Waits for all selections that are due, of rounds without rank 0 too."""
        self._resumed.set()
        self.join()

    def join(self) -> None:
        """Waits for the selection that was begun last."""
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self, selection: int, size: int, keys: List[int]) -> None:
        try:
            self._select(selection, size, keys)
        except Exception as error:
            self._worker.abort(f"worker 0: the core could not be selected: {error}")

    def _run_idle(self, size: int, keys: List[int]) -> None:
        try:
            while self._await_round((self._last + 1) * self._method.q, keys):
                self._select(self._last + 1, size, keys)
                self._last += 1
        except Exception as error:
            self._worker.abort(f"worker 0: a core could not be selected for the others: {error}")

    def _await_round(self, round_: int, keys: List[int]) -> bool:
        """Whether it is complete; returns once it is, or will not be before all go on together."""
        counts = self._slices_by_server(keys)
        while True:
            over = self._resumed.is_set()  # then no round is under way
            answers = self._ask_each(
                counts, lambda server: {"awaited": round_, "slices": counts[server]}
            )
            if over or all(answer["complete"] for answer, _ in answers):
                return all(answer["complete"] for answer, _ in answers)

    def _select(self, selection: int, size: int, keys: List[int]) -> None:
        # By place in the model: the name by which servers know a slice, and its server.
        slices = [
            ((key, index), server)
            for key in keys
            for index, _, _, server in self._worker.slices(key)
        ]
        places = {name: place for place, (name, _) in enumerate(slices)}
        counts = self._slices_by_server(keys)
        self._ask_each(
            counts,
            lambda server: {"round": selection * self._method.q, "slices": counts[server]},
        )
        c = self._method.c
        if isinstance(c, str):
            c = self._scale(counts, places)
        elements = sum(length for key in keys for _, _, length, _ in self._worker.slices(key))
        counted, left = self._divide(counts, c, elements, size)
        upper, left = _find(counted, left)
        counted, _ = self._count(counts, {"upper": upper})
        lower, left = _find(counted, left)
        least = upper << 16 | lower
        equal = self._joined(counts, {"equal": least}, "equal")
        equal.sort(key=lambda entry: places[entry[0], entry[1]])
        allowed: Dict[int, List[Any]] = {server: [] for server in counts}
        for key, index, count in equal:
            taken = min(count, left)
            left -= taken
            allowed[slices[places[key, index]][1]].append([key, index, taken])
        self._ask_each(
            counts,
            lambda server: {"least": least, "allowed": allowed[server], "selection": selection},
        )

    def _slices_by_server(self, keys: List[int]) -> Dict[int, int]:
        """How many of the keys' slices each server has, of those that have any."""
        return Counter(server for key in keys for _, _, _, server in self._worker.slices(key))

    def _scale(self, servers: Dict[int, int], places: Dict[Tuple[int, int], int]) -> float:
        """The sum of |w| over that of |g|; 0 without updates."""
        sums = self._joined(servers, {"sums": True}, "sums")
        sums.sort(key=lambda entry: places[entry[0], entry[1]])
        parameters, updates = 0.0, 0.0
        for _, _, of_parameters, of_updates in sums:
            parameters += of_parameters
            updates += of_updates
        return float(np.float32(parameters / updates)) if updates > 0 else 0.0

    def _divide(
        self, servers: Dict[int, int], c: float, elements: int, size: int
    ) -> Tuple[np.ndarray, int]:
        """How many parameters of those within a bracket have each upper half of bits, and how many
        of the core are among them."""
        asked = {"c": c, "step": max(1, -(-elements // _core.BRACKET_SAMPLE))}
        samples = [data for _, data in self._ask_each(servers, lambda _: asked)]
        sample = np.frombuffer(b"".join(samples), np.int32)
        # The sample may mislead; then all are counted.
        for bracket in (_core.bracket_of(sample, elements, size), _core.WHOLE_BRACKET):
            counted, above = self._count(servers, {"bracket": bracket})
            if above < size <= above + counted.sum():
                break
        return counted, size - above

    def _count(self, servers: Dict[int, int], what: Dict[str, Any]) -> Tuple[np.ndarray, int]:
        """How many parameters have each half of bits, and how many are above the bracket where one
        was asked for."""
        answers = self._ask_each(servers, lambda _: what)
        total = np.zeros(_core.HALVES, np.int64)
        for _, data in answers:
            found = np.frombuffer(data, _COUNTED)
            total[found["value"]] += found["count"]
        return total, sum(answer.get("above", 0) for answer, _ in answers)

    def _joined(self, servers: Dict[int, int], what: Dict[str, Any], name: str) -> List[Any]:
        answers = self._ask_each(servers, lambda _: what)
        return [entry for answer, _ in answers for entry in answer[name]]

    def _ask_each(
        self, servers: Dict[int, int], what: Callable[[int], Dict[str, Any]]
    ) -> List[Answer]:
        asked = [
            ask(self._worker, server, _STEP, {"store": self._store, **what(server)})
            for server in servers
        ]
        return answers_to(self._worker, asked)


def _packed(counts: np.ndarray) -> bytes:
    """Those that are not 0: most values do not occur."""
    values = np.flatnonzero(counts)
    found = np.empty(len(values), _COUNTED)
    found["value"], found["count"] = values, counts[values]
    return found.tobytes()


def _find(counts: np.ndarray, size: int) -> Tuple[int, int]:
    """The value that the size-th largest has, from how many have each value, and how many of those
    that have it are among the largest."""
    reached = np.cumsum(counts[::-1])  # by the largest values, the first of them alone, and so on
    if reached[-1] < size:
        raise KVStoreError(f"a core of {size} parameters among {reached[-1]}")
    value = len(counts) - 1 - int(np.searchsorted(reached, size))
    return value, size - int(counts[value + 1 :].sum())
