"""Every model trains a step through every store name, hybridized and not, with one and two devices.

`make test` runs a selection in one process, and MXNet's own store of a cluster with small models:
these have all pairs in one process, large ones one of our stores. `make test-all` runs all of them,
and all of ours in a cluster.
"""

from __future__ import annotations

import itertools

import mxnet as mx
import pytest
from kvstore_ext.errors import ArrayMismatch
from mxnet.kvstore import KVStoreBase

from tests.support.cluster import P3_SERVER, STOCK_SERVER, Cluster
from tests.support.paths import SCRIPTS
from tests.support.tasks.every_model import (
    IN_PROCESS,
    LARGE,
    MODELS,
    OURS,
    SMALL,
    WAYS,
    Case,
    check,
    every_case,
    selected_cases,
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    everything = metafunc.config.getoption("--all")
    if "cluster" not in metafunc.fixturenames:
        cases = every_case(IN_PROCESS) if everything else selected_cases(IN_PROCESS)
    else:
        # MXNet's own store can be made once in a process, and its servers serve no other.
        stock = [Case(way, MODELS, ["dist_sync"]) for way in WAYS]
        ours = every_case(OURS)
        cases = [*stock, *ours] if everything else [Case(WAYS[0], SMALL, ["dist_sync"])]
    metafunc.parametrize("case", cases, ids=str)


def test_a_step_in_one_process(case: Case) -> None:
    check(case)


def test_a_step_in_a_cluster(cluster: Cluster, case: Case) -> None:
    server = STOCK_SERVER if case.stores == ["dist_sync"] else P3_SERVER
    worker = SCRIPTS / "train_models.py"
    job = cluster.start(worker, case.way, ",".join(case.models), ",".join(case.stores), workers=1,
                        server=server)
    job.wait(600)
    assert "passed" in job.workers[0].output


def test_the_selection_has_every_pair() -> None:
    def pairs(cases: list[Case]) -> set:
        runs = [(model, store, f"hybridized {case.way.hybridize}", f"devices {case.way.devices}")
                for case in cases for model in case.models for store in case.stores]
        return {pair for run in runs for pair in itertools.combinations(run, 2)}

    selected, every = pairs(selected_cases(IN_PROCESS)), pairs(every_case(IN_PROCESS))
    assert {pair for pair in every - selected if pair[0] not in LARGE} == set()
    assert {pair[0] for pair in selected if pair[1] in ("p3", "terngrad")} >= set(LARGE)


def test_2bit_refuses_sparse_gradients_as_mxnet_does() -> None:
    store = mx.kv.create("2bit")
    store.init(0, mx.nd.zeros((2, 2)))
    with pytest.raises(ArrayMismatch, match="with compression 2bit it must be dense"):
        store.push(0, mx.nd.zeros((2, 2)).tostype("row_sparse"))


def test_the_second_names_are_for_the_same_stores() -> None:
    for name in OURS:
        assert KVStoreBase.kv_registry[f"dist_sync_{name}"] is KVStoreBase.kv_registry[name]
