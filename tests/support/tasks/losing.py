"""A job that loses one of its processes at a point of its training."""

from __future__ import annotations

import sys


def train(directory: str, role: str, phase: str) -> None:
    """Trains until a file says stop; stands still at the phase if it is the lost worker."""
    import os
    import threading
    from pathlib import Path

    def come_to(point: str) -> None:
        if point != phase:
            return
        if role == "worker":
            try:
                Path(directory, "lost").mkdir()  # the first to come here
            except FileExistsError:
                return
        print("at", point, flush=True)
        waits = role == "worker" or point in ("register", "exit")
        while waits and not os.path.exists(f"{directory}/go"):
            threading.Event().wait(0.01)  # until it, or the other one, is lost

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    come_to("register")
    store = mx.kv.create("p3")
    print("is worker", store.rank, flush=True)
    come_to("first key")
    arrays = [mx.nd.ones((30000,)) for _ in range(8)]
    for key, array in enumerate(arrays):
        store.broadcast(key, array, out=array)
    rows = mx.nd.arange(4, dtype="int64")
    sparse = mx.nd.ones((100, 10)).tostype("row_sparse")
    if phase == "sparse":
        store.init("rows", sparse)
    stop = mx.nd.zeros((1,))
    store.broadcast("stop", stop, out=stop)
    step = 0
    while stop.asscalar() == 0:
        step += 1
        for key, array in enumerate(arrays):
            if step == 5 and key == 3:
                come_to("push")
            store.push(key, array)
        if step == 5:
            come_to("pull")
        for key, array in enumerate(arrays):
            store.pull(key, out=array)
        if phase == "sparse":
            if step == 5:
                come_to("sparse")
            store.push("rows", mx.nd.ones((100, 10)).tostype("row_sparse"))
            store.row_sparse_pull("rows", out=sparse, row_ids=rows)
            sparse.wait_to_read()
        done = (phase == "exit" and step == 5) or os.path.exists(f"{directory}/stop")
        store.pushpull("stop", mx.nd.array([done]), out=stop)
    mx.nd.waitall()
    come_to("exit")
    store.close()
    print("left")


if __name__ == "__main__":
    train(*sys.argv[1:])
