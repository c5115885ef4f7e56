"""Training gives the parameters of one process, whatever the cluster and the slices.

Jobs train all of training.CASES; every test looks at several of them.
"""
from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Callable

import kvstore_ext
import numpy as np
import pytest

from tests.support.cluster import P3_SERVER, STOCK_SERVER, Cluster
from tests.support.paths import SCRIPTS
from tests.support.results import assert_same_bits, load
from tests.support.tasks.training import CASES, train_alone, train_with_store

SCRIPT = SCRIPTS / "train_bare.py"

Trained = list  # one a worker, by rank: case -> parameters
Train = Callable[..., Trained]

# The stock store rounds float64 to float32 on its way, and its servers lose multipliers.
STOCK_CASES = tuple(
    name for name, case in CASES.items() if case.dtype == "float32" and not case.multipliers
)

# Each slice of 64 bytes costs the optimizer on the servers as much as one of 200,000; and every
# worker costs.
FEW_CASES = ("summed", "schedule64", "multipliers")

alone = lru_cache(maxsize=None)(lambda name, workers: train_alone(CASES[name], workers))


@pytest.fixture(scope="module")
def train(module_cluster: Cluster, request: pytest.FixtureRequest) -> Train:
    """Runs a job, unless it has run before, and returns what each worker has in the end."""

    def run(store: str, workers: int, servers: int, slice_bytes: int, **more: bool) -> Trained:
        directory = module_cluster.directory / f"job{len(module_cluster.jobs)}"
        directory.mkdir()
        cases = tuple(CASES) if store == "p3" else STOCK_CASES
        if (slice_bytes == 64 or workers > 3) and not request.config.getoption("--all"):
            cases = FEW_CASES
        module_cluster.run(
            SCRIPT,
            *(store, directory, *cases),
            workers=workers,
            servers=servers,
            options={"slice_bytes": slice_bytes, **more},
            server=P3_SERVER if store == "p3" else STOCK_SERVER,
        )
        return [{case: load(directory, case, rank) for case in cases} for rank in range(workers)]

    return lru_cache(maxsize=None)(run)


def assert_workers_agree(trained: Trained) -> None:
    for other in trained[1:]:
        for case, found in other.items():
            assert_same_bits(found, trained[0][case], f"of case {case}")


@pytest.mark.parametrize(
    ("workers", "servers", "slice_bytes"),
    [(1, 1, 200_000), (1, 3, 1000), (2, 1, 64), (2, 4, 1000), (2, 2, 200_000)],
)
def test_up_to_two_workers_get_the_bits_of_one_process(
    train: Train, workers: int, servers: int, slice_bytes: int
) -> None:
    trained = train("p3", workers, servers, slice_bytes)
    assert_workers_agree(trained)
    for case, found in trained[0].items():
        assert_same_bits(found, alone(case, workers), f"of case {case}")


@pytest.mark.parametrize(
    ("workers", "servers", "slice_bytes"), [(3, 1, 200_000), (3, 2, 64), (4, 3, 1000)]
)
def test_more_workers_get_the_parameters_of_one_process_within_rounding(
    train: Train, workers: int, servers: int, slice_bytes: int
) -> None:
    trained = train("p3", workers, servers, slice_bytes)
    assert_workers_agree(trained)
    for case, found in trained[0].items():
        tolerance = 1e-12 if CASES[case].dtype == "float64" else 1e-5
        for name, value in alone(case, workers).items():
            message = f"{name} of case {case}"
            np.testing.assert_allclose(found[name], value, tolerance, tolerance, err_msg=message)


def test_deterministic_sums_in_the_order_of_ranks(train: Train) -> None:
    trained = train("p3", 3, 2, 1000, deterministic=True)
    assert_workers_agree(trained)
    for case, found in trained[0].items():
        assert_same_bits(found, alone(case, 3), f"of case {case}")


@pytest.mark.parametrize(("workers", "servers"), [(1, 1), (2, 2)])
def test_up_to_two_workers_get_the_bits_of_the_stock_store(
    train: Train, workers: int, servers: int
) -> None:
    stock = train("dist_sync", workers, servers, 200_000)
    lane = train("p3", workers, servers, 200_000)
    for rank in range(workers):
        for case in STOCK_CASES:
            assert_same_bits(lane[rank][case], stock[rank][case], f"of case {case}")


@pytest.mark.parametrize("slice_bytes", [64, 1000, 200_000])
def test_a_store_without_a_cluster_gives_the_same_bits(slice_bytes: int) -> None:
    for name, case in CASES.items():
        store = kvstore_ext.P3Worker(kvstore_ext.Options(slice_bytes=slice_bytes))
        assert_same_bits(train_with_store(store, name, case), alone(name, 1), f"of case {name}")
        store.close()


def train_until_told(directory: str) -> None:
    """A worker that trains the same again and again, until rank 0 finds a file named stop."""
    from pathlib import Path

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    from tests.support import results
    from tests.support.tasks.training import CASES, train_with_store

    store = mx.kv.create("p3")
    found = {}
    stop = mx.nd.array([0])
    while stop.asscalar() == 0:
        number = len(found)
        for name, value in train_with_store(store, f"run{number}", CASES["adam"]).items():
            found[f"{number}/{name}"] = value
        stop[:] = Path(directory, "stop").exists()
        store.broadcast(f"stop{number}", stop, out=stop)
    results.save(directory, "runs", store.rank, found)
    print("trained")


def test_lost_messages_that_are_sent_again_change_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    # ps-lite then loses all that arrives in a tenth of the seconds.
    lossy = {"PS_RESEND": "1", "PS_RESEND_TIMEOUT": "300", "PS_DROP_MSG": "10"}
    job = cluster.start(
        train_until_told, tmp_path, options={"slice_bytes": 2000}, environment=lossy
    )
    job.await_output("Drop message .* app_id=1,")
    (tmp_path / "stop").touch()
    job.wait()
    for rank in range(2):
        for key, value in load(tmp_path, "runs", rank).items():
            run, name = key.split("/")
            np.testing.assert_array_equal(value, alone("adam", 2)[name], f"{name} of run {run}")
