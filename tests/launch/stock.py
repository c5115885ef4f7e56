"""One program for a whole job of MXNet's own dist_sync store.

In a server or scheduler, importing mxnet does all the work and does not return. A worker pushes
its rank + 1 and prints its rank and the sum it pulls.
"""

from __future__ import annotations

import numpy_names  # noqa: F401  before mxnet

# isort: split
import mxnet

store = mxnet.kv.create("dist_sync")
store.init("weight", mxnet.nd.zeros((3,)))
store.push("weight", mxnet.nd.ones((3,)) * (store.rank + 1))
pulled = mxnet.nd.zeros((3,))
store.pull("weight", out=pulled)
print(f"{store.rank} of {store.num_workers} pulled {pulled.asnumpy().tolist()}", flush=True)
