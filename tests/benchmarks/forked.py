"""What tests run in forks of an interpreter (benchmarks/replay/forking.py)."""
from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import mxnet as mx

from benchmarks.replay.waits import Device, Operation, Wait

_LIMIT = 20.0  # seconds


def send_while_computing() -> None:
    """Prints whether an operation of a store's kind runs while a device's does."""
    sent = threading.Event()

    class Sends(Operation):
        def _run(self, _context: Any, _parameter: Any) -> None:
            sent.set()

    class Computes(Wait):
        def _run(self, _context: Any, _parameter: Any) -> None:
            computing.set()
            meanwhile.append(sent.wait(_LIMIT))

    computing, meanwhile = threading.Event(), []  # type: threading.Event, List[bool]
    computes, sends = Computes(Device(), 0.0), Sends(0)
    computes.push([], [mx.nd.zeros((1,))])
    assert computing.wait(_LIMIT)
    sends.push([], [mx.nd.zeros((1,))])
    mx.nd.waitall()
    print(meanwhile[0], flush=True)


def stay(_settings: str, result: str) -> None:
    """A worker that has its result and does not end."""
    Path(result).write_text('{"rank": 0}')
    time.sleep(60)


def aggregate() -> None:
    """Prints how many parameters an optimizer updates in one operation."""
    print(mx.optimizer.SGD().aggregate_num, flush=True)
