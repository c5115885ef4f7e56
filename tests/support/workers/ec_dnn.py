"""A worker that gives arrays to the others and trains by ec_dnn; leaves what it found."""
from __future__ import annotations

import sys
from typing import Any

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
from kvstore_ext import ec_dnn
from kvstore_ext.ec_dnn.models import Models

from tests.support import results
from tests.support.tasks.ec_dnn import TASKS, make_network, train

SHAPES = {"float32": (700, 3), "float64": (5,), "float16": (2, 3, 4)}


def array_of(rank: int, dtype: str, turn: int) -> np.ndarray:
    random = np.random.RandomState(1000 * turn + rank)
    return random.normal(size=SHAPES[dtype]).astype(dtype)


def bytes_of(store: Any, way: str) -> int:
    """Of models: what has travelled in rounds of keys."""
    mx.nd.waitall()  # a worker's own model may still leave when its round has ended
    kinds = {"sent": ("init", "push", "pull"), "received": ("result",)}[way]
    return sum(store.stats()[way].get(kind, 0) for kind in kinds)


def exchange_arrays(store: Any) -> dict[str, np.ndarray]:
    """Every worker's arrays in turn, the last rank first, twice."""
    found = {}
    for turn in range(2):
        for root in reversed(range(store.num_workers)):
            for dtype in SHAPES:
                array = mx.nd.array(array_of(store.rank, dtype, turn), dtype=dtype)
                store.broadcast_from(root, dtype, array)
                found[f"{turn} {root} {dtype}"] = array.asnumpy()
    return found


def travelled(store: Any, name: str) -> np.ndarray:
    """Bytes of models sent and received in a round of a task, and a model's size."""
    task = TASKS[name]
    network = make_network(task)
    network.initialize()
    inputs = np.random.RandomState(0).normal(size=(20, 6))
    trainer = ec_dnn.Trainer(
        network, (inputs, np.arange(20) % 4), "sgd", method=task.make_method(), store=store,
        batch_size=5,
    )
    rounds = trainer.rounds(4)
    next(rounds)
    before = [bytes_of(store, way) for way in ("sent", "received")]
    for _ in rounds:
        pass
    after = [bytes_of(store, way) for way in ("sent", "received")]
    size = sum(p.data().size * 4 for p in network.collect_params().values())
    return np.array([*(b - a for a, b in zip(before, after)), size])


def in_turn(store: Any, unit: float = 1, **how: Any) -> np.ndarray:
    """The numbers of which a network holds every worker's, and its own in the end."""
    network = mx.gluon.nn.Dense(3, in_units=2)
    network.initialize(mx.init.Constant(unit * (store.rank + 1)))
    models = Models(network, store, **how)
    seen = [network.weight.data().asnumpy()[0, 0] for _ in models.each()]
    return np.array([*seen, network.weight.data().asnumpy()[0, 0]])


def main(directory: str) -> None:
    store = mx.kv.create("p3")
    found = {"arrays": exchange_arrays(store)}
    found["in turn"] = {
        str(prefetch): in_turn(store, prefetch=prefetch) for prefetch in (False, True)
    }
    found["beyond float16"] = {"in turn": in_turn(store, -1e6, wire="float16")}
    for name, task in TASKS.items():
        found[name] = train(task, store)
    for name in ("wide", "wide without diversity", "wide float16"):
        found[f"{name} bytes"] = {"bytes": travelled(store, name)}
    for name, arrays in found.items():
        results.save(directory, name, store.rank, arrays)


if __name__ == "__main__":
    main(sys.argv[1])
