"""Every model trains a step through every store name, hybridized and not, with one and two devices.

`make test` runs a selection, in which every model meets every store name in a process and every way
at least once, and each store of a cluster in one way; `make test-all` runs all of them.
"""

from __future__ import annotations

import pytest
from cluster import P3_SERVER, STOCK_SERVER, TESTS, Cluster
from every_model import IN_CLUSTER, IN_PROCESS, MODELS, WAYS, Way, check, selected


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "models" not in metafunc.fixturenames:
        return
    stores = IN_CLUSTER if "cluster" in metafunc.fixturenames else IN_PROCESS
    cases = []
    for number, store in enumerate(stores):
        for place, way in enumerate(WAYS):
            if metafunc.config.getoption("--all"):
                cases.append((store, way, MODELS))
            elif stores is IN_PROCESS or place == number:
                cases.append((store, way, selected(number, way)))
    ids = [f"{store}-{way}" for store, way, _ in cases]
    metafunc.parametrize(("store", "way", "models"), cases, ids=ids)


def test_a_step_in_one_process(store: str, way: Way, models: list[str]) -> None:
    check(store, way, models)


def test_a_step_in_a_cluster(cluster: Cluster, store: str, way: Way, models: list[str]) -> None:
    server = STOCK_SERVER if store == "dist_sync" else P3_SERVER
    worker = TESTS / "workers" / "train_models.py"
    job = cluster.start(worker, store, way, ",".join(models), workers=1, server=server)
    job.wait(600)
    assert "passed" in job.workers[0].output


def test_the_selection_has_every_model_with_every_store_and_in_every_way() -> None:
    chosen = {(store, way, model) for store in range(len(IN_PROCESS)) for way in WAYS
              for model in selected(store, way)}
    assert {(store, model) for store, _, model in chosen} == {
        (store, model) for store in range(len(IN_PROCESS)) for model in MODELS}
    assert {(way, model) for _, way, model in chosen} == {
        (way, model) for way in WAYS for model in MODELS}
