"""The least time that an iteration can take."""
from __future__ import annotations

from itertools import accumulate
from typing import List

from benchmarks.replay.trace import FRAMES, Trace


def least_seconds(trace: Trace, hosts: int, gigabits: float) -> float:
    """Of an iteration of any scheme that sends every gradient, float32, over links of Gbit/s.

    Layers 0 to i have no gradient before the backward pass of layer i ends, and the next forward
    pass of layer i, and so that of all after it, needs their sums: what they have on the wire is a
    gap that nothing before or after can fill. A host must send its own part of the sum of all
    others and its gradients for their parts: 2 (N - 1) / N of all, whether servers do it on the
    workers' hosts or workers in a ring.
    """
    backward = _sums([layer.backward for layer in reversed(trace.layers)])[::-1]
    forward = _sums([layer.forward for layer in reversed(trace.layers)])[::-1]
    sent = _sums([wire_seconds(layer.elements, hosts, gigabits) for layer in trace.layers])
    return max(trace.compute, *(sum(parts) for parts in zip(backward, sent, forward)))


def wire_seconds(elements: int, hosts: int, gigabits: float) -> float:
    """That a host's link is busy with so many elements of a gradient, headers counted."""
    return elements * 32 * 2 * (hosts - 1) / hosts * FRAMES / (gigabits * 1e9)


def _sums(values: List[float]) -> List[float]:
    return list(accumulate(values))
