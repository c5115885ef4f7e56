"""gluon.Trainer and Module train with the store as without it."""
from __future__ import annotations

from typing import Any, Callable

import kvstore_ext
import pytest

from tests.support.cluster import STOCK_SERVER, Cluster
from tests.support.paths import SCRIPTS
from tests.support.results import Arrays, agreed, assert_same_bits
from tests.support.tasks.interfaces import (
    train_alone_with_trainer,
    train_with_module,
    train_with_trainer,
)

SCRIPT = SCRIPTS / "train_interface.py"
ON_SERVERS, ON_WORKERS = "trainer:2:on servers:multiplied", "trainer:1:multiplied"
# The stock store's servers lose multipliers, and decay, which Module has for some parameters, is
# as it should be for the first task alone: see tasks/own_keys.py.
MODULE, PLAIN = "module:2:on servers", "trainer:2:on servers"
MODULE_ON_WORKERS = "module:2"


def run(cluster: Cluster, store: str, *tasks: str, **how: Any) -> Callable[[str], Arrays]:
    """Runs a job of two workers, and gives what a task has ended with; asserts that both workers
    have the same."""
    directory = cluster.directory / store
    directory.mkdir()
    cluster.run(SCRIPT, store, directory, *tasks, **how)

    return lambda task: agreed(directory, task, 2)


@pytest.fixture(scope="module")
def lane(module_cluster: Cluster) -> Callable[[str], Arrays]:
    tasks = [ON_SERVERS, ON_WORKERS, MODULE, MODULE_ON_WORKERS]
    return run(module_cluster, "p3", *tasks, servers=3, options={"slice_bytes": 1000})


@pytest.fixture(scope="module")
def stock(module_cluster: Cluster) -> Callable[[str], Arrays]:
    return run(module_cluster, "dist_sync", MODULE, PLAIN, server=STOCK_SERVER)


@pytest.mark.parametrize("on_servers", [True, False])
@pytest.mark.parametrize("devices", [1, 2])
def test_a_trainer_in_one_process_gives_the_bits_of_one_without_a_store(
    devices: int, on_servers: bool
) -> None:
    store = kvstore_ext.P3Worker(kvstore_ext.Options(slice_bytes=1000))
    found = train_with_trainer(store, 0, 1, devices, on_servers, multiplied=True)
    assert_same_bits(found, train_alone_with_trainer(1, devices, multiplied=True))
    store.close()


def test_a_trainer_makes_the_store_by_its_name() -> None:
    found = train_with_trainer("dist_sync_p3", 0, 1, 1, on_servers=True, multiplied=True)
    assert_same_bits(found, train_alone_with_trainer(1, 1, multiplied=True))


@pytest.mark.parametrize(("task", "devices"), [(ON_SERVERS, 2), (ON_WORKERS, 1)])
def test_trainers_of_two_workers_give_the_bits_of_one(
    lane: Callable[[str], Arrays], task: str, devices: int
) -> None:
    assert_same_bits(lane(task), train_alone_with_trainer(2, devices, multiplied=True))


def test_trainers_with_the_stock_store_give_the_same_bits(
    stock: Callable[[str], Arrays],
) -> None:
    assert_same_bits(stock(PLAIN), train_alone_with_trainer(2, 2, multiplied=False))


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("on_kvstore", ["0", "1"])
def test_a_module_in_one_process_gives_the_bits_of_one_without_a_store(
    monkeypatch: pytest.MonkeyPatch, devices: int, on_kvstore: str
) -> None:
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", on_kvstore)
    store = kvstore_ext.P3Worker(kvstore_ext.Options(slice_bytes=1000))
    found = train_with_module(store, 0, devices)
    assert_same_bits(found, train_with_module(None if devices == 1 else "local", 0, devices))
    store.close()


@pytest.mark.parametrize("task", [MODULE, MODULE_ON_WORKERS])
def test_modules_of_two_workers_give_the_bits_of_the_stock_store(
    lane: Callable[[str], Arrays], stock: Callable[[str], Arrays], task: str
) -> None:
    assert_same_bits(lane(task), stock(MODULE))
