"""Calls into MXNet that may not end, and what they leave behind."""
from __future__ import annotations

import gc
import time
import weakref

import numpy as np
from kvstore_ext.lane.bounded_calls import BoundedCalls


def test_a_call_holds_nothing_once_it_has_ended() -> None:
    """An array that it has handed over, say, which may be gigabytes."""
    calls = BoundedCalls(60)
    array = np.ones(3)
    assert calls(lambda array=array: array.sum(), lambda: "") == 3
    gone = weakref.ref(array)
    del array
    until = time.monotonic() + 60
    while gone() is not None and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)
    assert gone() is None
