"""How many threads may encode without taking a processor from what MXNet computes."""
from __future__ import annotations

import os

import mxnet as mx

_MOST = 4  # which keep up with a fast link


def threads_left() -> int:
    """Processors that this process may use and MXNet does not, 1 to 4.

    On a CPU MXNet computes with as many threads as OMP_NUM_THREADS says, or one for each core,
    which leaves nothing: a core's second thread is no further processor. With a GPU in the machine
    it has one that hands work to it.
    """
    processors = len(os.sched_getaffinity(0))
    return max(1, min(_MOST, processors - _computing(processors)))


def _computing(processors: int) -> int:
    """Threads; MXNet's operators take OMP_NUM_THREADS, which has a number for each level."""
    said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if said.isdigit() and int(said) > 0:
        return int(said)
    try:
        return 1 if mx.context.num_gpus() else processors
    except mx.base.MXNetError:  # there is one, but nothing that drives it
        return processors
