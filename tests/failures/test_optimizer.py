"""An optimizer that servers cannot run: the workers hear why, and the job ends."""

from __future__ import annotations

import re
from typing import Any

import kvstore_ext
import mxnet as mx
import pytest

from tests.support.cluster import AT_ONCE, P3_SERVER, Cluster, Job, await_failure
from tests.support.processes import LIMIT

# A module of optimizers beside the script.
OPTIMIZERS = """
import os
import sys
import time

import mxnet as mx


class Ascent(mx.optimizer.Optimizer):
    def create_state(self, index, weight):
        return None

    def update(self, index, weight, grad, state):
        weight[:] += grad


class Unspeakable(Ascent):
    def __init__(self):
        super().__init__()
        self.function = lambda: None


class Raises(Ascent):
    def update(self, index, weight, grad, state):
        if index == "key" and self._index_update_count[index] == 2:
            raise ArithmeticError("nothing left to divide by")
        super().update(index, weight, grad, state)


class Exits(Ascent):
    def update(self, index, weight, grad, state):
        if os.environ["DMLC_ROLE"] == "server":
            sys.exit(3)
        super().update(index, weight, grad, state)


class CannotCompute(Ascent):
    def update(self, index, weight, grad, state):
        super().update(index, weight, grad, state)
        if index == "key":
            weight[:] = mx.nd.random.normal(0, -1, shape=weight.shape)


class Hangs(Ascent):
    def update(self, index, weight, grad, state):
        if os.environ["DMLC_ROLE"] == "server":
            time.sleep(30)


class Guesses(Ascent):
    def update(self, index, weight, grad, state):
        weight[:] = mx.nd.random.normal(shape=weight.shape)
"""


def train_with(name: str) -> None:
    """Three steps of 2 workers with an optimizer of the module."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import user_optimizers

    store = mx.kv.create("p3")
    value = mx.nd.zeros((4,))
    store.broadcast("key", value, out=value)
    store.set_optimizer(getattr(user_optimizers, name)())
    for _ in range(3):
        store.pushpull("key", mx.nd.ones((4,)), out=value)
        value.wait_to_read()
    print("trained:", value.asnumpy().tolist())


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """One whose scripts have the module beside them."""
    (cluster.directory / "user_optimizers.py").write_text(OPTIMIZERS)
    return cluster


def trusting(cluster: Cluster) -> dict[str, Any]:
    """How to start servers that trust the user's module, which lies where they run."""
    server = (*P3_SERVER, "--trust", "user_optimizers")
    return {"server": server, "directory": cluster.directory}


@pytest.fixture(scope="module")
def failing(module_cluster: Cluster) -> dict[str, Job]:
    """Jobs that end by their optimizers, side by side."""
    (module_cluster.directory / "user_optimizers.py").write_text(OPTIMIZERS)
    start, trusts = module_cluster.start, trusting(module_cluster)
    alone = {"servers": 1, "options": AT_ONCE}
    return {
        **{
            name: start(train_with, name, options=AT_ONCE, **trusts)
            for name in ("Raises", "Exits", "CannotCompute")
        },
        **{name: start(train_with, name, **alone) for name in ("Unspeakable", "Guesses")},
        "Exits on rows": start(train_rows_with, "Exits", **alone, **trusts),
        "another rate": start(update_differently, "lamb", 0.5, "lamb", **alone),
        "another class": start(update_differently, "lamb", 0.25, "sgd", **alone),
        "another class of rank 0": start(update_differently, "sgd", 0.25, "lamb", **alone),
    }


def test_a_class_that_servers_do_not_trust_is_refused(cluster: Cluster) -> None:
    job = cluster.start(train_with, "Ascent", options=AT_ONCE)
    await_failure(*job.workers, *job.servers)
    for process in [*job.workers, *job.servers]:
        assert "refused to load user_optimizers.Ascent" in process.output
        assert "--trust user_optimizers" in process.output


def test_a_class_of_a_trusted_module_trains(cluster: Cluster) -> None:
    job = cluster.run(train_with, "Ascent", servers=1, **trusting(cluster))
    for worker in job.workers:
        assert "trained: [6.0, 6.0, 6.0, 6.0]" in worker.output


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Raises", "the optimizer failed on key 'key': ArithmeticError: nothing left to divide by"),
        ("Exits", "the optimizer failed on key 'key': SystemExit: 3"),
        ("CannotCompute", "the optimizer failed on key 'key'"),
    ],
)
def test_an_optimizer_that_fails_ends_the_job(
    failing: dict[str, Job], name: str, words: str
) -> None:
    job = failing[name]
    await_failure(*job.workers, *job.servers, seconds=LIMIT)
    for process in [*job.workers, *job.servers]:
        assert words in process.output


def test_an_optimizer_that_no_pickle_can_hold_is_refused(failing: dict[str, Job]) -> None:
    job = failing["Unspeakable"]
    await_failure(*job.workers, *job.servers, seconds=LIMIT)
    assert any(
        "optimizer Unspeakable cannot travel to the servers" in worker.output
        and "update_on_kvstore=False" in worker.output
        for worker in job.workers
    )


def test_an_optimizer_that_draws_random_numbers_is_refused(failing: dict[str, Job]) -> None:
    job = failing["Guesses"]
    await_failure(*job.workers, *job.servers, seconds=LIMIT)
    assert any("Guesses gives another result each time" in w.output for w in job.workers)


def train_rows_with(name: str) -> None:
    """A step of 2 workers on a sparse key with an optimizer of the module."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import user_optimizers

    store = mx.kv.create("p3")
    value = mx.nd.zeros((4, 2)).tostype("row_sparse")
    store.init("rows", value)
    store.set_optimizer(getattr(user_optimizers, name)())
    store.push("rows", mx.nd.ones((4, 2)).tostype("row_sparse"))
    store.row_sparse_pull("rows", out=value, row_ids=mx.nd.arange(4, dtype="int64"))
    value.wait_to_read()


def push_rows_before_an_optimizer() -> None:
    """Worker 1 is late."""
    import time

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    value = mx.nd.zeros((4, 2)).tostype("row_sparse")
    store.init("rows", value)
    time.sleep(store.rank)
    store.push("rows", mx.nd.ones((4, 2)).tostype("row_sparse"))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=8))
    store.row_sparse_pull("rows", out=value, row_ids=mx.nd.arange(4, dtype="int64"))
    print("has", value.asnumpy()[0].tolist())


def test_what_was_pushed_before_an_optimizer_is_not_updated_by_it(cluster: Cluster) -> None:
    job = cluster.run(push_rows_before_an_optimizer, servers=1, options=AT_ONCE)
    for worker in job.workers:
        assert "has [2.0, 2.0]" in worker.output


def go_on_without() -> None:
    """The store is as it was before the optimizer that it has refused."""
    import kvstore_ext
    import mxnet as mx
    import user_optimizers

    store = mx.kv.create("p3")
    value = mx.nd.zeros((4,))
    store.broadcast("key", value, out=value)
    try:
        store.set_optimizer(user_optimizers.Unspeakable())
    except kvstore_ext.KVStoreError:
        print("refused")
    store.pushpull("key", mx.nd.ones((4,)), out=value)
    print("sums:", value.asnumpy().tolist())
    value[:] = 5
    store.set_optimizer(mx.optimizer.LAMB())
    print("took another one")


def test_a_refused_optimizer_changes_nothing(cluster: Cluster) -> None:
    job = cluster.run(go_on_without, servers=1, options=AT_ONCE)
    for worker in job.workers:
        assert "refused" in worker.output
        assert "sums: [2.0, 2.0, 2.0, 2.0]" in worker.output
        assert "took another one" in worker.output


def test_an_optimizer_that_hangs_on_sparse_keys_ends_the_job(cluster: Cluster) -> None:
    how = {"options": {"silence": 3, "patience": 3}, **trusting(cluster)}
    job = cluster.start(train_rows_with, "Hangs", servers=1, **how)
    await_failure(*job.processes)
    words = r"worker [01]: MXNet's own servers have not answered a pull of key 'rows', within 3 s"
    for process in job.processes:
        process.await_output(words)


def test_an_optimizer_that_exits_on_sparse_keys_ends_the_job(failing: dict[str, Job]) -> None:
    job = failing["Exits on rows"]
    await_failure(*job.processes, seconds=LIMIT)
    for process in job.processes:
        assert re.search("the optimizer failed on sparse key .*: SystemExit: 3", process.output)


def update_differently(class_of_0: str, rate_of_1: str, class_of_1: str) -> None:
    """Workers update by themselves, or one of them does, worker 1 in another way."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    value = mx.nd.ones((4, 2))
    optimizer = mx.optimizer.create(class_of_0, learning_rate=0.25)
    if store.rank == 1:
        optimizer = mx.optimizer.create(class_of_1, learning_rate=float(rate_of_1))
    store.set_optimizer(optimizer)
    store.broadcast("key", value, out=value)
    store.pushpull("key", mx.nd.ones((4, 2)), out=value)
    value.wait_to_read()


@pytest.mark.parametrize("differs", ["rate", "class", "class of rank 0"])
def test_workers_that_update_differently_are_told(failing: dict[str, Job], differs: str) -> None:
    job = failing[f"another {differs}"]
    await_failure(*job.workers, *job.servers, seconds=LIMIT)
    for process in [*job.workers, *job.servers]:
        assert "workers update key 'key' by different optimizers: worker 0 with" in process.output
        assert '"lr": 0.25' in process.output
        assert ", worker 1 with " in process.output
        assert differs != "rate" or '"lr": 0.5' in process.output


def test_another_optimizer_after_training_began_is_refused() -> None:
    store = kvstore_ext.P3Worker()
    store.set_optimizer(mx.optimizer.SGD())
    store.set_optimizer(mx.optimizer.Adam())
    weight = mx.nd.zeros((3,))
    store.broadcast(0, weight, out=weight)
    store.pushpull(0, mx.nd.ones((3,)), out=weight)
    store.set_optimizer(mx.optimizer.Adam())
    store.pushpull(0, mx.nd.ones((3,)), out=weight)
    with pytest.raises(kvstore_ext.KVStoreError, match=r"is Adam.*changed to SGD"):
        store.set_optimizer(mx.optimizer.SGD())
    store.close()


def test_the_same_class_in_between_is_no_way_to_another() -> None:
    store = kvstore_ext.P3Worker()
    store.set_optimizer(mx.optimizer.SGD())
    weight = mx.nd.zeros((3,))
    store.broadcast(0, weight, out=weight)
    store.pushpull(0, mx.nd.ones((3,)), out=weight)
    store.set_optimizer(mx.optimizer.SGD())
    with pytest.raises(kvstore_ext.KVStoreError, match=r"is SGD.*changed to Adam"):
        store.set_optimizer(mx.optimizer.Adam())
    store.close()
