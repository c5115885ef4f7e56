"""The calls of a store: support/checks/, without a cluster and on the workers of a job."""
from __future__ import annotations

import kvstore_ext
import mxnet as mx
import pytest

from tests.support.checks import CHECKS
from tests.support.cluster import Cluster, Job
from tests.support.outcomes import assert_kept
from tests.support.paths import SCRIPTS


@pytest.fixture(scope="module")
def job(module_cluster: Cluster) -> Job:
    """Three workers that have run all checks, with slices so small that most keys have several."""
    return module_cluster.run(
        SCRIPTS / "run_checks.py",
        "tests.support.checks",
        workers=3,
        servers=2,
        options={"slice_bytes": 100},
        # MXNet's own store then deals the rows of some sparse keys to both servers, not of all.
        environment={"MXNET_KVSTORE_BIGARRAY_BOUND": "30"},
    )


@pytest.mark.parametrize("name", [*CHECKS, "stores_share_their_options", "closing_is_final"])
def test_in_a_cluster(job: Job, name: str) -> None:
    assert_kept(job, name)


# In one process the script's own optimizer updates sparse keys by their places: docs/migration.md.
IN_A_CLUSTER = {"multipliers_of_sparse_keys_are_found_by_name"}


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in IN_A_CLUSTER])
def test_in_one_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVSTORE_EXT_OPTIONS", '{"slice_bytes": 100}')
    store = mx.kv.create("p3")
    CHECKS[name](store)
    store.close()


def test_a_closed_store_refuses_everything() -> None:
    store = kvstore_ext.P3Worker()
    store.close()
    store.close()
    value = mx.nd.ones((1,))
    for refused in (
        lambda: store.init(0, value),
        lambda: store.broadcast(0, value, out=value),
        lambda: store.push(0, value),
        lambda: store.pull(0, out=value),
        lambda: store.pushpull(0, value, out=value),
        lambda: store.broadcast_from(0, "own", value),
        lambda: store.set_optimizer(mx.optimizer.SGD()),
        lambda: store.save_optimizer_states("states"),
        lambda: store.snapshot("snapshots"),
        lambda: store.restore("snapshots"),
        store.barrier,
    ):
        with pytest.raises(kvstore_ext.KVStoreError, match="the store is closed"):
            refused()
