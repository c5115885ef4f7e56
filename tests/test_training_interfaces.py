"""gluon.Trainer and Module train with the store as without it."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import kvstore_ext
import numpy as np
import pytest
from cluster import STOCK_SERVER, TESTS, Cluster
from interfaces import train_alone_with_trainer, train_with_module, train_with_trainer
from training import Parameters

STOCK = {"server": STOCK_SERVER}


def train(cluster: Cluster, directory: Path, store: str, *what: Any, **how: Any) -> Parameters:
    """Runs a job of two workers; asserts that both have the same parameters in the end."""
    directory.mkdir(exist_ok=True)
    cluster.run(TESTS / "workers" / "train_interface.py", store, directory, *what, **how)
    first, second = (dict(np.load(directory / f"{rank}.npz")) for rank in (0, 1))
    assert_same_bits(first, second)
    return first


def assert_same_bits(found: Parameters, expected: Parameters) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)


@pytest.mark.parametrize("on_servers", [True, False])
@pytest.mark.parametrize("devices", [1, 2])
def test_a_trainer_in_one_process_gives_the_bits_of_one_without_a_store(
    devices: int, on_servers: bool
) -> None:
    store = kvstore_ext.P3(kvstore_ext.Options(slice_bytes=1000))
    found = train_with_trainer(store, 0, 1, devices, on_servers, multiplied=True)
    assert_same_bits(found, train_alone_with_trainer(1, devices, multiplied=True))
    store.close()


def test_a_trainer_makes_the_store_by_its_name() -> None:
    found = train_with_trainer("dist_sync_p3", 0, 1, 1, on_servers=True, multiplied=True)
    assert_same_bits(found, train_alone_with_trainer(1, 1, multiplied=True))


@pytest.mark.parametrize(
    ("devices", "flags", "servers"),
    [(2, ("on servers", "multiplied"), 2), (1, ("multiplied",), 3)],
    ids=["on servers", "on workers"],
)
def test_trainers_of_two_workers_give_the_bits_of_one(
    cluster: Cluster, tmp_path: Path, devices: int, flags: tuple[str, ...], servers: int
) -> None:
    options = {"slice_bytes": 1000}
    found = train(
        cluster, tmp_path, "p3", "trainer", devices, *flags, servers=servers, options=options
    )
    assert_same_bits(found, train_alone_with_trainer(2, devices, multiplied=True))


def test_trainers_with_the_stock_store_give_the_same_bits(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Without multipliers, which the stock store's servers lose.
    found = train(cluster, tmp_path, "dist_sync", "trainer", 2, "on servers", **STOCK)
    assert_same_bits(found, train_alone_with_trainer(2, 2, multiplied=False))


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("on_kvstore", ["0", "1"])
def test_a_module_in_one_process_gives_the_bits_of_one_without_a_store(
    monkeypatch: pytest.MonkeyPatch, devices: int, on_kvstore: str
) -> None:
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", on_kvstore)
    store = kvstore_ext.P3(kvstore_ext.Options(slice_bytes=1000))
    found = train_with_module(store, 0, devices)
    assert_same_bits(found, train_with_module(None if devices == 1 else "local", 0, devices))
    store.close()


def test_modules_of_two_workers_give_the_bits_of_the_stock_store(
    cluster: Cluster, tmp_path: Path
) -> None:
    stock = train(cluster, tmp_path / "stock", "dist_sync", "module", 2, **STOCK)
    options = {"slice_bytes": 1000}
    lane = train(cluster, tmp_path / "lane", "p3", "module", 2, options=options)
    assert_same_bits(lane, stock)
    on_workers = {"MXNET_UPDATE_ON_KVSTORE": "0"}
    lane = train(
        cluster, tmp_path / "lane", "p3", "module", 2, options=options, environment=on_workers
    )
    assert_same_bits(lane, stock)
