"""The random generators of a process, as a part of its run."""
from __future__ import annotations

import random
from typing import Any, Dict

import mxnet as mx
import numpy as np

from .part import Part


class RandomStates(Part):
    """NumPy's and Python's global generators, and MXNet's.

    MXNet does not tell the states of its generators. So a snapshot draws a number from them, and
    seeds them with it: runs that are snapshot at the same steps draw the same numbers.
    """

    name = "random states"

    def own(self, rank: int) -> Dict[str, Any]:
        seed = int(mx.nd.random.randint(0, 2**31 - 1, shape=(1,), ctx=mx.cpu()).asscalar())
        mx.random.seed(seed)
        return {"numpy": np.random.get_state(), "python": random.getstate(), "mxnet": seed}

    def put_back(self, shared: Any, own: Dict[str, Any], is_own: bool) -> None:
        """A worker that the snapshot's job did not have keeps the generators that its script has
        seeded: another's would give both the same numbers."""
        if not is_own:
            return
        mx.random.seed(own["mxnet"])
        np.random.set_state(own["numpy"])
        random.setstate(own["python"])
