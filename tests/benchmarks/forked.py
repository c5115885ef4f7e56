"""What tests run in forks of an interpreter (benchmarks/replay/forking.py)."""
from __future__ import annotations

import threading
from typing import Any, List

import mxnet as mx

from benchmarks.replay.waits import _Operation

_LIMIT = 20.0  # seconds


def meet() -> None:
    """Prints how many of two operations of the engine have met the other one."""
    both = threading.Barrier(2)
    met: List[bool] = []

    class Meets(_Operation):
        def _run(self, _context: Any, _parameter: Any) -> None:
            try:
                both.wait(_LIMIT)
            except threading.BrokenBarrierError:
                return
            met.append(True)

    operations = [Meets(), Meets()]
    arrays = [mx.nd.zeros((1,)) for _ in operations]
    for operation, array in zip(operations, arrays):
        operation.push([], [array])
    mx.nd.waitall()
    print(len(met), flush=True)


def aggregate() -> None:
    """Prints how many parameters an optimizer updates in one operation."""
    print(mx.optimizer.SGD().aggregate_num, flush=True)
