"""How long a worker's device waits for parameters: what communication costs that nothing hides.

A device waits while it has nothing to compute because a parameter has not come. MXNet computes
behind the script's back, so that no clock in the script sees it. Instead marks are queued among the
operations in MXNet's engine, and note when it comes to them. Any store can be measured so.
"""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import time
from typing import Any, Iterator, Sequence

import mxnet as mx
from mxnet.base import _LIB, check_call

EVERY = 10  # steps, of which one is watched: its marks cost a little themselves

# What is noted of each parameter: its gradient was computed, it came back, the next forward pass
# has used it, and the next gradient was computed.
COMPUTED, CAME, USED, COMPUTED_AGAIN = range(4)
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)  # MXNet's EngineSyncFunc
_CPU = (ctypes.c_int * 2)(1, 0)  # its Context, and its property of having a thread of one's own
_PRIORITIZED = ctypes.c_int(3)
_NOT_YET = -1.0


def waited(idle_from: float, came: Sequence[float], used: Sequence[float]) -> float:
    """Seconds in which a device had nothing to compute because a parameter had not come.

    Layers with parameters are taken in the order in which the device has done with them. It waits
    for each from the time when it had done with the one before to the time when the parameter came.
    What it computes between them, such as pooling, is taken for waiting where the next parameter is
    late, so that this is the most that it may have waited.

    Parameters
    ----------
    idle_from
        When it had nothing to do but the forward pass, in seconds.
    came, used
        When each parameter had come, and when the forward pass had used it.
    """
    total, free = 0.0, idle_from
    for used_at, came_at in sorted(zip(used, came)):
        total += max(0.0, came_at - free)
        free = max(free, used_at)
    return total


class Marks:
    """The marks from the end of one step's computation to that of the next."""

    def __init__(self, parameters: int) -> None:
        self.forward_begun = 0.0
        self._times = [[_NOT_YET] * parameters for _ in range(4)]
        self._queued = 0

    @property
    def ended(self) -> bool:
        """Whether the engine has come to all that were queued."""
        return self._noted() == self._queued

    @property
    def complete(self) -> bool:
        """Whether all were queued for each parameter, and the engine has come to them."""
        return self._noted() == 4 * len(self._times[0])

    def _noted(self) -> int:
        return sum(time != _NOT_YET for times in self._times for time in times)

    def queue(self, kind: int, parameter: int, array: mx.nd.NDArray, after_readers: bool) -> None:
        """Has the time be noted when what is queued now and writes to the array has ended; with
        `after_readers`, what reads it too."""
        arrays = (ctypes.c_void_p * 1)(array.handle)
        reads, writes = (None, arrays) if after_readers else (arrays, None)
        self._queued += 1
        number = next(_numbers)
        _marks[number] = (self, kind, parameter)
        check_call(_LIB.MXEnginePushSyncND(
            _NOTING, ctypes.c_void_p(number), None, ctypes.byref(_CPU), reads,
            int(reads is not None), writes, int(writes is not None), ctypes.byref(_PRIORITIZED), 0,
            b"Mark"))

    def waited(self) -> float:
        """As the function `waited`; for complete marks, as `seconds`."""
        idle_from = max(self.forward_begun, *self._times[COMPUTED])
        return waited(idle_from, self._times[CAME], self._times[USED])

    def seconds(self) -> float:
        """How long the step took."""
        return max(self._times[COMPUTED_AGAIN]) - max(self._times[COMPUTED])

    def note(self, kind: int, parameter: int) -> None:
        """The engine has come to this mark."""
        self._times[kind][parameter] = time.perf_counter()


# What the engine calls lasts as long as the process, whatever becomes of the marks' watch.
_numbers = itertools.count(1)
_marks: dict[int, tuple[Marks, int, int]] = {}  # to which it has not come yet


def _note(_: Any, number: int) -> None:
    marks, kind, parameter = _marks.pop(number)
    marks.note(kind, parameter)


_NOTING = _FUNCTION(_note)


class Watch:
    """Watches the three parts of a training step, on the first device of a worker.

        with watch.forward(), autograd.record():
            losses = [...]
        with watch.backward():
            autograd.backward(losses)
        with watch.update():
            trainer.step(batch_size)

    Called by the script's thread; the engine's threads note the times. A worker alone has nothing
    to wait for and is not watched.
    """

    def __init__(self, trainer: mx.gluon.Trainer, workers: int) -> None:
        self._trainer = trainer
        self._active = workers > 1
        self._steps = 0
        self._watched: Marks | None = None  # of the step that goes on
        self._parameters: list[mx.gluon.Parameter] = []  # of that one
        self._open: list[Marks] = []  # to which the engine may still come, with that one
        self._waited = self._seconds = 0.0
        if self._active:
            # The engine must not come to a mark when the interpreter has gone.
            atexit.register(_end_computing)

    @contextlib.contextmanager
    def forward(self) -> Iterator[None]:
        """Around what queues the forward pass."""
        begun = time.perf_counter()
        yield
        if self._watched is not None:
            self._watched.forward_begun = begun
            for i, parameter in enumerate(self._parameters):
                self._watched.queue(USED, i, parameter.list_data()[0], after_readers=True)

    @contextlib.contextmanager
    def backward(self) -> Iterator[None]:
        """Around what queues the backward pass."""
        yield
        self._steps += 1
        if self._watched is not None:
            self._queue_computed(self._watched, COMPUTED_AGAIN)
            self._watched = None
        if self._active and self._steps % EVERY == 0:
            self._parameters = self._travelling()
            self._watched = Marks(len(self._parameters))
            self._open.append(self._watched)
            self._queue_computed(self._watched, COMPUTED)

    @contextlib.contextmanager
    def update(self) -> Iterator[None]:
        """Around what sends the gradients."""
        yield
        if self._watched is None:
            return
        for i, parameter in self._still_trained():
            # What comes is the parameter, or the gradients' sum, from which workers compute it.
            updates_here = not self._trainer._update_on_kvstore
            came = (parameter.list_grad if updates_here else parameter.list_data)()[0]
            self._watched.queue(CAME, i, came, after_readers=False)

    def begin(self) -> None:
        """Forgets what it has seen."""
        self._watched = None
        self._take_complete()
        self._waited = self._seconds = 0.0

    def share(self) -> float | None:
        """The share of the steps watched since `begin` in which the device waited; None before one
        was."""
        self._take_complete()
        return self._waited / self._seconds if self._seconds else None

    def _take_complete(self) -> None:
        for marks in [marks for marks in self._open if marks.ended and marks is not self._watched]:
            self._open.remove(marks)
            if marks.complete:
                self._waited += marks.waited()
                self._seconds += marks.seconds()

    def _queue_computed(self, marks: Marks, kind: int) -> None:
        for i, parameter in self._still_trained():
            marks.queue(kind, i, parameter.list_grad()[0], after_readers=False)

    def _still_trained(self) -> list[tuple[int, mx.gluon.Parameter]]:
        """Those of the step, but for what was frozen meanwhile: its marks are left incomplete."""
        return [(i, parameter) for i, parameter in enumerate(self._parameters)
                if parameter.grad_req != "null"]

    def _travelling(self) -> list[mx.gluon.Parameter]:
        """Those that travel; not sparse ones, which are fetched row by row."""
        return [parameter for parameter in self._trainer._params
                if parameter.grad_req != "null" and parameter._stype == "default"]


def _end_computing() -> None:
    with contextlib.suppress(mx.MXNetError):  # of a computation: the script's to report
        mx.nd.waitall()
