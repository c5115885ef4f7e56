"""A worker that trains parameters with Slim-DP: train_slim.py DIRECTORY CASE ...

A case is JSON (tasks/slim_dp.py). Each has a store of its own. The local models of all steps go to
DIRECTORY/CASE-RANK.npz, and the global one at the end.
"""
from __future__ import annotations

import json
import sys

import kvstore_ext  # noqa: F401 - makes the stores' names known
import mxnet as mx
import numpy as np

from tests.support import results
from tests.support.tasks.slim_dp import SHAPES, Case, gradient, initial, make_optimizer


def run(case: Case, store: mx.kvstore.KVStore) -> dict[str, np.ndarray]:
    store.set_gradient_compression({"type": "slim_dp", **case.options})
    store.set_optimizer(make_optimizer())
    contexts = [mx.Context(case.device, i) for i in range(case.devices)]
    parameters = [[mx.nd.zeros(shape, c) for c in contexts] for shape in SHAPES]
    for key, arrays in enumerate(parameters):
        store.broadcast(key, mx.nd.array(initial(key)), out=arrays)
    found = {}
    for step in range(case.steps):
        for key, arrays in enumerate(parameters):
            whole = gradient(case, store.rank, key, step, arrays[0].asnumpy())
            parts = [mx.nd.array(whole / case.devices, c) for c in contexts]
            store.pushpull(key, parts, out=arrays, priority=-key)
        for key, arrays in enumerate(parameters):
            found[f"{step}-{key}"] = arrays[0].asnumpy()
            for other in arrays[1:]:
                assert (other.asnumpy() == found[f"{step}-{key}"]).all()
    for key, arrays in enumerate(parameters):
        store.pull(key, out=arrays)
        found[f"global-{key}"] = arrays[0].asnumpy()
    return found


def main(directory: str, *cases: str) -> None:
    for number, text in enumerate(cases):
        store = mx.kv.create("p3")
        found = run(Case(**json.loads(text)), store)
        results.save(directory, number, store.rank, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
