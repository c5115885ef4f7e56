"""Workers whose parameters have drifted apart are told so: the option verify_every."""
from __future__ import annotations

import numpy as np
import pytest
from kvstore_ext.protocol.digest_board import DigestBoard

from tests.support.cluster import AT_ONCE, Cluster


def train(how: str, drifts: str = "") -> None:
    """Trains in this way; after step 4 a bit of what the worker of this rank has is another one."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np
    from mxnet import autograd, gluon

    def drift(step: int, rank: int, array: mx.nd.NDArray) -> None:
        if step == 4 and str(rank) == drifts:
            bits = array.asnumpy().view(np.uint32)
            bits.flat[-1] ^= 1
            array[:] = mx.nd.array(bits.view(np.float32))

    if how.startswith("trainer"):
        network = gluon.nn.HybridSequential(prefix="net_")
        with network.name_scope():
            network.add(gluon.nn.Dense(7, in_units=5), gluon.nn.BatchNorm(), gluon.nn.Dense(3))
        network.initialize(mx.init.One())
        trainer = gluon.Trainer(
            network.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9},
            kvstore="p3", update_on_kvstore=how == "trainer",
        )
        for step in range(1, 9):
            rank = trainer._kvstore.rank if trainer._kvstore else 0
            with autograd.record():
                loss = network(mx.nd.random.normal(rank, shape=(4, 5))).sum()
            loss.backward()
            trainer.step(4)
            drift(step, trainer._kvstore.rank, network[2].weight.data())
            store = trainer._kvstore
    elif how == "module":
        store = mx.kv.create("p3")
        data = np.random.RandomState(store.rank).rand(32, 5).astype(np.float32)
        batches = mx.io.NDArrayIter(data, np.zeros(32), 4, label_name="softmax_label")
        output = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="last")
        module = mx.mod.Module(mx.sym.SoftmaxOutput(output, name="softmax"))
        module.bind(batches.provide_data, batches.provide_label)
        module.init_params(mx.init.One())
        module.init_optimizer(store, "sgd", {"learning_rate": 0.1})
        for step, batch in enumerate(batches, 1):
            module.forward_backward(batch)
            module.update()
            drift(step, store.rank, module._exec_group.param_arrays[0][0])
    else:
        store = mx.kv.create("p3")
        # LAMB looks at whole parameters, which workers update in the store.
        update = mx.optimizer.LAMB if how == "store that updates" else mx.optimizer.SGD
        store.set_optimizer(update(learning_rate=0.1))
        values = {key: mx.nd.ones((40,)) for key in ("a", "b")}
        average = mx.nd.zeros((40,))  # which each worker has of its own, and nobody pushes
        for key, value in {**values, "average": average}.items():
            store.init(key, value)
            store.pull(key, out=value)
        for step in range(1, 9):
            average += store.rank
            for key, value in values.items():
                store.pushpull(key, value * (store.rank + 1), out=value)
            drift(step, store.rank, values["b"])
    mx.nd.waitall()
    print("trained", store.steps, "steps")
    store.close()
    print("left in order")


OPTIONS = {**AT_ONCE, "verify_every": 2}
FIRST = {
    "trainer": "7 (net_dense1_weight)",
    "trainer alone": "7 (net_dense1_weight)",
    "module": "last_weight",
    "store": "b",
    "store that updates": "b",
}


@pytest.mark.parametrize(
    "how",
    [
        "trainer alone",
        "store",
        "store that updates",
        pytest.param("trainer", marks=pytest.mark.all_only),
        pytest.param("module", marks=pytest.mark.all_only),
    ],
)
def test_a_worker_that_has_drifted_is_named(cluster: Cluster, how: str) -> None:
    job = cluster.start(train, how, "1", workers=3, servers=1, options=OPTIONS)
    expected = "server 0: worker 1 has drifted: after step 4 key "
    expected += f"{FIRST[how]} is not that of workers 0 and 2; 1 of "
    if how.startswith("store"):
        expected += "2 keys differ"
    for worker in job.workers:
        assert worker.wait() == 1
        assert expected in worker.output
        assert "trained 8 steps" not in worker.output


def test_workers_that_are_alike_go_on(cluster: Cluster) -> None:
    """With Trainer: tests/training/test_watched.py."""
    job = cluster.run(train, "store", workers=2, servers=2, options=OPTIONS)
    assert all("left in order" in worker.output for worker in job.workers)


def train_for_different_times() -> None:
    """Worker 1 has two batches less than the others, and drifts in no step."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1))
    value = mx.nd.ones((40,))
    store.broadcast("a", value, out=value)
    for _ in range(2):
        with store.joined():
            for _ in range(3 if store.rank == 1 else 5):
                store.pushpull("a", value * (store.rank + 1), out=value)
    mx.nd.waitall()
    store.close()
    print("left in order")


def test_idle_workers_are_not_missed(cluster: Cluster) -> None:
    options = {**OPTIONS, "verify_every": 1}
    job = cluster.run(train_for_different_times, workers=3, servers=1, options=options)
    assert all("left in order" in worker.output for worker in job.workers)


def left(board: DigestBoard, rank: int, step: int, *digests: int) -> None:
    asked = {"store": 0, "step": step, "rank": rank, "host": f"node{rank}", "keys": ["a", "b", "c"]}
    board.answer(asked, np.array(digests, "<u4").tobytes())


def test_the_majority_is_right() -> None:
    said: list[str] = []
    board = DigestBoard(4, said.append)
    for rank in range(4):
        left(board, rank, 2, 1, 2, 3)
    for rank in (3, 0, 2, 1):
        left(board, rank, 4, 1, 9 if rank == 0 else 2, 9 if rank == 0 else 3)
    assert said == [
        "server 0: worker 0 has drifted: after step 4 key b is not that of workers 1, 2 and 3; "
        "2 of 3 keys differ (worker 0 on node0)"
    ]


def test_of_two_nobody_knows_who_is_right() -> None:
    said: list[str] = []
    board = DigestBoard(2, said.append)
    left(board, 1, 6, 1, 2, 4)
    left(board, 0, 6, 1, 2, 3)
    assert said == [
        "server 0: worker 1 has drifted: after step 6 key c is not that of worker 0, or the other "
        "way round; 1 of 3 keys differ (worker 1 on node1)"
    ]


def test_those_that_are_idle_are_compared_without() -> None:
    said: list[str] = []
    board = DigestBoard(4, said.append)
    for rank in (0, 2, 1):
        left(board, rank, 2, 1, 2, rank // 2)
    assert said == []
    left(board, 1, 4, 1, 2, 3)
    assert len(said) == 1
    assert "worker 2 has drifted: after step 2 key c is not that of workers 0 and 1; " in said[0]
