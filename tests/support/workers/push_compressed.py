"""A worker that pushes compressed gradients: push_compressed.py DIRECTORY CASE ...

A case is JSON (tasks/compressed.py). Each has a store of its own, in which every key gets as many
gradients as the case says; what a worker pulls after each goes to DIRECTORY/CASE-RANK.npz.
"""
from __future__ import annotations

import json
import sys

import kvstore_ext  # noqa: F401 - makes the stores' names known
import mxnet as mx
import numpy as np

from tests.support import results
from tests.support.tasks.compressed import Case, gradient


def run(case: Case, store: mx.kvstore.KVStore) -> dict[str, np.ndarray]:
    if not case.by_name:
        store.set_gradient_compression({"type": case.type, **case.options})
    if case.momentum:
        store.adopt_optimizer(mx.optimizer.SGD(momentum=case.momentum))
    found = {}
    contexts = [mx.Context(case.device, i) for i in range(case.devices)]
    for key, shape in enumerate(case.shapes):
        store.init(key, mx.nd.zeros(shape, dtype=case.dtype))
    for round in range(1, case.rounds + 1):
        for key, shape in enumerate(case.shapes):
            parts = [gradient(case, store.rank, key, round, i) for i in range(case.devices)]
            arrays = [mx.nd.array(p, c, case.dtype) for p, c in zip(parts, contexts)]
            outs = [mx.nd.zeros(shape, c, case.dtype) for c in contexts]
            store.pushpull(key, arrays, out=outs, priority=-key)
            for out in outs[1:]:
                assert (out.asnumpy() == outs[0].asnumpy()).all()
            found[f"{key}-{round}"] = outs[0].asnumpy()
    return found


def main(directory: str, *cases: str) -> None:
    mx.util.set_np_shape(True)  # a key may have no elements
    for number, text in enumerate(cases):
        case = Case(**json.loads(text))
        store = mx.kv.create(case.type if case.by_name else "p3")
        results.save(directory, number, store.rank, run(case, store))


if __name__ == "__main__":
    main(*sys.argv[1:])
