"""A script that changes the store's name trains as it did with MXNet's own."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Callable

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest

from tests.support.cluster import STOCK_SERVER, Cluster
from tests.support.paths import SCRIPTS
from tests.support.results import agreed, assert_same_bits

SCRIPT = SCRIPTS / "drop_in.py"
OPTIMIZERS = ("sgd", "adam", "lamb")
# With their numbers of devices; Module comes first: see tasks/own_keys.py.
INTERFACES = [
    *(("module", 2), ("module", 1)),
    *(("trainer", 1), ("trainer", 2)),
    *(("bare", 1), ("bare", 2)),
]
PLACES = {"workers": 3, "servers": 2}
# Tasks that save or load: uncompressed, and with what methods carry over.
RESUMED = [
    "trainer:%s:2",
    "module:%s:1",
    *(f"trainer:%s:2:{store}" for store in ("onebit", "terngrad", "2bit")),
]


def tasks_with(optimizer: str, everything: bool) -> list[str]:
    """Each interface with each optimizer, and with 1 and 2 devices where it is the first."""
    rest = slice(OPTIMIZERS.index(optimizer) % 2, None, 2)
    chosen = INTERFACES if everything or optimizer == OPTIMIZERS[0] else INTERFACES[rest]
    return [f"{interface}:{optimizer}:{devices}" for interface, devices in chosen]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "trained" in metafunc.fixturenames:
        everything = metafunc.config.getoption("--all")
        tasks = [task for optimizer in OPTIMIZERS for task in tasks_with(optimizer, everything)]
        metafunc.parametrize("trained", tasks)


@pytest.fixture(scope="module")
def everything(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--all")


@pytest.fixture(scope="module")
def lane(module_cluster: Cluster, everything: bool) -> Path:
    """Where a job has left the results of all tasks."""
    directory = module_cluster.directory / "lane"
    directory.mkdir()
    tasks = [task for optimizer in OPTIMIZERS for task in tasks_with(optimizer, everything)]
    options = {"slice_bytes": 1000}
    module_cluster.run(SCRIPT, "p3", directory, *tasks, "2bit", options=options, **PLACES)
    return directory


@pytest.fixture(scope="module")
def stock(module_cluster: Cluster, everything: bool) -> Callable[[str], Path]:
    """Gives the directory where a job of MXNet's own store has left the results of an optimizer, or
    of compression: its servers do the same with all keys.
    """

    @lru_cache(maxsize=None)
    def trained(optimizer: str) -> Path:
        directory = module_cluster.directory / optimizer
        directory.mkdir()
        tasks = [optimizer] if optimizer == "2bit" else tasks_with(optimizer, everything)
        module_cluster.run(SCRIPT, "dist_sync", directory, *tasks, server=STOCK_SERVER, **PLACES)
        return directory

    return trained


def test_fifty_steps_end_with_the_parameters_of_the_stock_store(
    lane: Path, stock: Callable[[str], Path], trained: str
) -> None:
    _, optimizer, _ = trained.split(":")
    expected, found = agreed(stock(optimizer), trained, 3), agreed(lane, trained, 3)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        # Servers add three workers' gradients in the order in which they come.
        np.testing.assert_allclose(found[name], value, 1e-4, 1e-5, err_msg=name)


def test_two_bit_compression_gives_the_stock_stores_bits(
    lane: Path, stock: Callable[[str], Path]
) -> None:
    expected, found = agreed(stock("2bit"), "2bit", 3), agreed(lane, "2bit", 3)
    assert_same_bits(found, expected)


@pytest.fixture(scope="module")
def halves(module_cluster: Cluster) -> Path:
    """Where a job has gone on after it has saved its states, and another one with what it saved."""
    directory = module_cluster.directory / "halves"
    directory.mkdir()
    options = {"slice_bytes": 300}
    for what, servers in (("saving", 2), ("loading", 3)):
        tasks = [task % what for task in RESUMED]
        module_cluster.run(SCRIPT, "p3", directory, *tasks, servers=servers, options=options)
    return directory


@pytest.mark.parametrize("task", RESUMED)
def test_states_go_on_in_a_cluster_with_another_number_of_servers(halves: Path, task: str) -> None:
    saving, loading = (agreed(halves, task % what, 2) for what in ("saving", "loading"))
    assert_same_bits(loading, saving)


def test_sgld_with_given_draws_gives_what_one_process_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drawn(mean: float, deviation: float, shape: Any, **how: Any) -> mx.nd.NDArray:
        return mx.nd.full(shape, mean + deviation / 2)

    monkeypatch.setattr(mx.optimizer.optimizer, "normal", drawn)
    weight, alone = mx.nd.ones((100,)), mx.nd.ones((100,))
    updater = mx.optimizer.get_updater(mx.optimizer.SGLD(learning_rate=0.1))
    store = kvstore_ext.P3Worker(kvstore_ext.Options(slice_bytes=100))
    store.set_optimizer(mx.optimizer.SGLD(learning_rate=0.1))
    store.broadcast(0, weight, out=weight)
    for step in range(5):
        gradient = mx.nd.full((100,), step)
        store.pushpull(0, gradient, out=weight)
        updater(0, gradient, alone)
    np.testing.assert_array_equal(weight.asnumpy(), alone.asnumpy())
    store.close()
