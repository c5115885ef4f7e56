"""A process with stores that forks amid its rounds: it goes on, and its child ends by itself."""
from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from kvstore_ext.security.job_key import NAME

from tests.support.cluster import Cluster
from tests.support.processes import run_python

# Updates are made by a thread of Python's.
ALONE = """
import ctypes, os, sys

import kvstore_ext
import mxnet as mx
import numpy as np

# As what forks by itself in C, and holds Python's lock, like subprocess before Python 3.10.
fork = {"os": os.fork, "C": ctypes.PyDLL(None).fork}[sys.argv[1]]
store = mx.kv.create("p3")
store.set_optimizer(mx.optimizer.AdaGrad())
weight = mx.nd.zeros((300_000,))
store.broadcast(0, weight, out=weight)
for _ in range(20):
    store.pushpull(0, mx.nd.ones((300_000,)), out=weight)
    child = fork()
    if child == 0:
        os._exit(5)
    assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 5
expected = mx.nd.zeros((300_000,))
update = mx.optimizer.get_updater(mx.optimizer.AdaGrad())
for _ in range(20):
    update(0, mx.nd.ones((300_000,)), expected)
np.testing.assert_allclose(weight.asnumpy(), expected.asnumpy(), rtol=1e-6)
store.close()
"""


@pytest.mark.parametrize("how", ["os", "C"])
def test_updates_that_are_under_way_come_to_their_end(how: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ALONE)
    run_python(script, how, seconds=90, fork=True)


ENDING = """
import os, sys

import kvstore_ext
import mxnet as mx

store = mx.kv.create("p3")
value = mx.nd.zeros((10,))
store.broadcast(0, value, out=value)
child = os.fork()
if child == 0:
    log = open(sys.argv[1], "w")
    log.write("the child's last line")
    sys.exit(5)
assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 5
store.close()
"""


def test_a_child_without_a_cluster_ends_as_scripts_do(tmp_path: Path) -> None:
    run_python("-c", ENDING, tmp_path / "log", seconds=60)
    assert (tmp_path / "log").read_text() == "the child's last line"


def train(store_name: str) -> None:
    """Forks after each round's start; children end as scripts do."""
    import os
    import sys

    import kvstore_ext
    import mxnet as mx
    import numpy as np
    import pytest

    from tests.support.checks.slim_dp import open_store

    store = mx.kv.create("p3") if store_name == "p3" else open_store(p=1, q=1)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    weight = mx.nd.zeros((100_000,))
    store.broadcast(0, weight, out=weight)
    for step in range(6):
        store.pushpull(0, mx.nd.ones((100_000,)), out=weight)
        child = os.fork()
        if child == 0:
            with pytest.raises(kvstore_ext.KVStoreError, match="closed"):
                store.push(0, weight)
            sys.exit(5)
        assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 5, step
    # By the sum of both workers' gradients, or the mean of their updates.
    np.testing.assert_array_equal(weight.asnumpy(), -6 if store_name == "p3" else -3)
    print("trained on")


@pytest.mark.parametrize(
    ("store_name", "key"),
    [("p3", ""), ("slim_dp", ""), ("p3", secrets.token_hex(32))],
    ids=["p3", "slim_dp", "encrypted"],
)
def test_workers_that_fork_train_on(cluster: Cluster, store_name: str, key: str) -> None:
    environment = {NAME: key} if key else {}
    job = cluster.start(train, store_name, workers=2, servers=1, environment=environment)
    for worker in job.workers:
        assert worker.wait(60) == 0, worker.output
        assert "trained on" in worker.output


def reopen() -> None:
    """Opens a store once the last one is closed."""
    import kvstore_ext
    import mxnet as mx
    import pytest

    mx.kv.create("p3").close()
    with pytest.raises(kvstore_ext.ClusterError, match="has left its job, since its last store"):
        mx.kv.create("p3")
    print("heard why")


def test_who_has_left_the_job_hears_so_at_once(cluster: Cluster) -> None:
    job = cluster.start(reopen, workers=2, servers=1)
    for worker in job.workers:
        worker.await_output("heard why", 30)
