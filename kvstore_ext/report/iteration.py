"""Where a worker's step goes: computing forwards, computing backwards, and waiting.

The event of a layer lasts from the end of the one before to its own, what it waited for included.
Until the results of its keys are there a forward pass waits; then it computes. So time counts as
waiting, too, in which the script had not begun the pass yet, while it loads data say.

Without layers, of a network that neither Gluon's blocks nor Module run, or without their names, of
a worker that was killed, only so much is certain: the key whose gradient was ready last belongs to
the first layer of the next forward pass (P3, section 3), and nothing is computed from then until
its result is there. Others may wait as well.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, NamedTuple

import numpy as np

from ..trace.events import Kind, Message
from ..trace.reading import JobTrace, ProcessTrace
from .layers import keys_of_layers
from .moments import MISSING, Moments, Names
from .steps import Steps

# A wait of one worker, by its rank, for one key's result; `step` counts in its `Steps`.
WAIT = np.dtype(
    [("worker", "<i4"), ("step", "<i4"), ("key", "<u8"), ("round", "<i8"), ("begin", "<i8"),
     ("end", "<i8")]
)  # fmt: skip


@dataclass(frozen=True)
class Iteration:
    """How one worker spent its steps.

    Attributes
    ----------
    steps
        Those that count.
    forward, backward
        Seconds that each step computed, shape (n,); of both nan where layers are not known.
    waits
        Records of `WAIT`.
    waiting
        Seconds that each step waited, shape (n,); the least, where layers are not known.
    at_most
        Seconds that each step can have waited, shape (n,).
    """

    steps: Steps
    forward: np.ndarray
    backward: np.ndarray
    waits: np.ndarray
    waiting: np.ndarray
    at_most: np.ndarray

    @property
    def layers_known(self) -> bool:
        """Whether the network's layers were recorded."""
        return not bool(np.isnan(self.forward).any())

    @property
    def computing(self) -> np.ndarray:
        """Seconds of each step that were no waiting, shape (n,)."""
        return self.steps.seconds - self.waiting

    @property
    def share_waiting(self) -> float:
        """Of the time that its steps took; nan without any."""
        total = float(np.sum(self.steps.seconds))
        return float(np.sum(self.waiting)) / total if total else float("nan")

    @property
    def share_at_most(self) -> float:
        """The most that this share can be."""
        total = float(np.sum(self.steps.seconds))
        return float(np.sum(self.at_most)) / total if total else float("nan")


def iterations(job: JobTrace, names: Names, steps: List[Steps]) -> List[Iteration]:
    """Of each worker, in their order."""
    keys = keys_of_layers(job)
    return [
        _Worker(worker, names, keys, own).iteration() for worker, own in zip(job.workers, steps)
    ]


class _Pass(NamedTuple):
    """Events of layers that lie in steps, and in which."""

    events: np.ndarray
    steps: np.ndarray


class _Worker:
    def __init__(
        self,
        worker: ProcessTrace,
        names: Names,
        keys: Dict[str, List[int]],
        steps: Steps,
    ) -> None:
        self._worker = worker
        self._names = names
        self._keys = keys
        self._steps = steps
        self._done = Moments(names, worker.exchanges)
        ready = worker.of_kind(Kind.READY)
        self._ready = ready[ready["message"] == Message.PUSH]

    def iteration(self) -> Iteration:
        forward = self._events(Kind.FORWARD)
        named = len(self._worker.passes(Kind.FORWARD)) == len(self._worker.of_kind(Kind.FORWARD))
        count = len(self._steps.numbers)
        at_most = self._exposed()
        if not len(forward.events) or not named or not self._keys:
            waits = self._certain_waits()
            waiting = self._sum(waits["end"] - waits["begin"], waits["step"])
            unknown = np.full(count, np.nan)
            return Iteration(self._steps, unknown, unknown, waits, waiting,
                             np.maximum(waiting, at_most))  # fmt: skip
        waits = self._waits(forward)
        waiting = self._sum(waits["end"] - waits["begin"], waits["step"])
        backward = self._events(Kind.BACKWARD)
        forwards = self._sum(self._inside(forward), forward.steps) - waiting
        backwards = self._sum(self._inside(backward), backward.steps)
        return Iteration(self._steps, forwards, backwards, waits, waiting, waiting)

    def _events(self, kind: Kind) -> _Pass:
        events = self._worker.of_kind(kind)
        steps = self._steps.of(events["end"])
        return _Pass(events[steps >= 0], steps[steps >= 0])

    def _inside(self, passes: _Pass) -> np.ndarray:
        """How long each event lies in its step."""
        begins = np.maximum(passes.events["begin"], self._steps.begins[passes.steps])
        return passes.events["end"] - begins

    def _sum(self, nanoseconds: np.ndarray, steps: np.ndarray) -> np.ndarray:
        return np.bincount(steps, nanoseconds, minlength=len(self._steps.numbers)) / 1e9

    def _waits(self, forward: _Pass) -> np.ndarray:
        """Of every layer for the last of its keys."""
        found = []
        for number, layer in enumerate(self._worker.layers):
            keys = self._keys.get(layer, [])
            if not keys:
                continue
            here = forward.events["key"] == number
            if not here.any():
                continue
            events, steps = forward.events[here], forward.steps[here]
            begins = np.maximum(events["begin"], self._steps.begins[steps])
            rounds = np.stack([self._rounds_by(key, events["end"]) for key in keys])
            come = np.stack(
                [self._done.end(self._names.of(*both)) for both in zip(keys, rounds)]
            )
            last = come.argmax(axis=0)
            ends = np.minimum(come.max(axis=0), events["end"])
            held = ends > begins
            awaited = np.array(keys, "<u8")[last], rounds[last, np.arange(len(last))]
            found.append(self._records(steps, *awaited, begins, ends)[held])
        return np.concatenate(found) if found else np.zeros(0, WAIT)

    def _rounds_by(self, key: int, times: np.ndarray) -> np.ndarray:
        """The key's last round whose gradient was ready by these times; 0 for none.

        Keys that a script does not push in every step are in other rounds than the step.
        """
        own = self._ready[self._ready["key"] == key]
        own = own[np.argsort(own["end"], kind="stable")]
        rounds = np.append(0, own["round"].astype(np.int64))
        return rounds[np.searchsorted(own["end"], times, side="right")]

    def _certain_waits(self) -> np.ndarray:
        """From the last gradient of a step until the result of its key."""
        ready, steps = self._of_steps()
        order = np.lexsort((ready["end"], steps))
        ready, steps = ready[order], steps[order]
        last = np.append(steps[1:] != steps[:-1], True)[: len(steps)]
        ready, steps = ready[last], steps[last]
        rounds = ready["round"].astype(np.int64)
        ends = np.minimum(self._done.end(self._names.of(ready["key"], rounds)),
                          self._steps.ends[steps])  # fmt: skip
        waits = self._records(steps, ready["key"], rounds, ready["end"], ends)
        return waits[ends > ready["end"]]

    def _exposed(self) -> np.ndarray:
        """Seconds from a step's last gradient to its last result, shape (n,)."""
        ready, steps = self._of_steps()
        ends = self._done.end(self._names.of(ready["key"], ready["round"].astype(np.int64)))
        last_ready = np.full(len(self._steps.numbers), MISSING)
        last_done = np.full(len(self._steps.numbers), MISSING)
        np.maximum.at(last_ready, steps, ready["end"])
        np.maximum.at(last_done, steps, ends)
        last_done = np.minimum(last_done, self._steps.ends)
        known = (last_ready != MISSING) & (last_done > last_ready)
        return np.where(known, last_done - last_ready, 0) / 1e9

    def _of_steps(self) -> _Pass:
        """The gradients whose results steps wait for: of all since the first of a further round."""
        numbers = self._steps.numbers
        if not len(numbers):
            return _Pass(self._ready[:0], np.zeros(0, int))
        ready = self._ready[np.argsort(self._ready["end"], kind="stable")]
        reached = np.maximum.accumulate(ready["round"].astype(np.int64))
        order = np.argsort(numbers, kind="stable")
        place = np.minimum(np.searchsorted(numbers[order], reached), len(numbers) - 1)
        of_step = numbers[order][place] == reached
        return _Pass(ready[of_step], order[place][of_step])

    def _records(
        self,
        steps: np.ndarray,
        keys: np.ndarray,
        rounds: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
    ) -> np.ndarray:
        records = np.zeros(len(steps), WAIT)
        records["worker"] = self._worker.rank
        records["step"], records["key"], records["round"] = steps, keys, rounds
        records["begin"], records["end"] = begins, ends
        return records
