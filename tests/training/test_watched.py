"""What watches over a job finds nothing where nothing is wrong, whatever the method."""
from __future__ import annotations

import re

from kvstore_ext.compression import TYPES

from tests.support.cluster import AT_ONCE, Cluster


def train_by_all_methods() -> None:
    """Trains by each method, with small keys and large ones."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx
    from kvstore_ext.compression import TYPES
    from mxnet import autograd, gluon

    mx.random.seed(1)
    steps = 6
    last = mx.kv.create("p3")  # its end is the job's
    for number, kind in enumerate(["p3", "p3", *TYPES]):
        network = gluon.nn.HybridSequential(prefix=f"net{number}_")
        with network.name_scope():
            network.add(gluon.nn.Dense(300, in_units=200), gluon.nn.Dense(3, in_units=300))
        network.initialize(mx.init.Xavier())
        store = mx.kv.create(kind)
        trainer = gluon.Trainer(
            network.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store,
            update_on_kvstore=False if number == 1 else None,
        )
        for _ in range(steps):
            with autograd.record():
                loss = network(mx.nd.random.normal(store.rank, shape=(4, 200))).sum()
            loss.backward()
            trainer.step(4)
        mx.nd.waitall()
        assert store.stats()["refused"] == 0
        store.close()
        print(f"trained by {kind}")
    last.close()


def test_all_methods_pass(cluster: Cluster) -> None:
    options = {
        **AT_ONCE,
        "checksum": True,
        "verify_every": 2,
        "non_finite": "skip",
        "slice_bytes": 20000,
        "window_bytes": 20000,  # so that slices wait, and the first ones' memory is used again
    }
    job = cluster.run(train_by_all_methods, workers=3, options=options)
    trained = [f"trained by {kind}" for kind in ("p3", "p3", *TYPES)]
    for worker in job.workers:
        assert re.findall("^trained by .*$", worker.output, re.MULTILINE) == trained
