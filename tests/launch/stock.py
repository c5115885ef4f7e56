"""One program for a whole job of MXNet's own dist_sync store.

In a server or scheduler, importing mxnet does all the work and does not return. A worker pushes
its rank + 1 and prints its rank and the sum it pulls.
"""

from __future__ import annotations

import numpy as np

# NumPy 1.24 took away the names that MXNet 1.9.1 reads on import.
for name, kind in {"bool": bool, "int": int, "float": float, "object": object}.items():
    if name not in np.__dict__:
        setattr(np, name, kind)

import mxnet  # noqa: E402

store = mxnet.kv.create("dist_sync")
store.init("weight", mxnet.nd.zeros((3,)))
store.push("weight", mxnet.nd.ones((3,)) * (store.rank + 1))
pulled = mxnet.nd.zeros((3,))
store.pull("weight", out=pulled)
print(f"{store.rank} of {store.num_workers} pulled {pulled.asnumpy().tolist()}", flush=True)
