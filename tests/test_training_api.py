"""The store's calls: api_checks, each on a store without a cluster and on the workers of a job."""
from __future__ import annotations

import kvstore_ext
import pytest
from api_checks import CHECKS
from cluster import TESTS, Cluster, Job


@pytest.fixture(scope="module")
def job(module_cluster: Cluster) -> Job:
    """Three workers that have run all checks, with slices so small that most keys have several."""
    script = TESTS / "workers" / "run_checks.py"
    return module_cluster.run(script, workers=3, servers=2, options={"slice_bytes": 100})


@pytest.mark.parametrize("name", [*CHECKS, "closing_is_final"])
def test_in_a_cluster(job: Job, name: str) -> None:
    for worker in job.workers:
        assert f"passed {name}\n" in worker.output, f"see what {worker.name} wrote"


@pytest.mark.parametrize("name", CHECKS)
def test_in_one_process(name: str) -> None:
    store = kvstore_ext.P3(kvstore_ext.Options(slice_bytes=100))
    CHECKS[name](store)
    store.close()


def test_a_closed_store_refuses_everything() -> None:
    store = kvstore_ext.P3()
    store.close()
    store.close()
    with pytest.raises(kvstore_ext.KVStoreError, match="the store is closed"):
        store.barrier()
