"""Workers that simulate Slim-DP have the models of a job's workers."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import _core, compression

from benchmarks.simulations.slim_dp import SlimSimulation
from tests.support.cluster import Cluster
from tests.support.paths import SCRIPTS
from tests.support.results import load
from tests.support.tasks.training import BATCH, make_batch
from tests.support.workers.train_slim_network import OPTIMIZER, STEPS, make_normalised_network

SCRIPT = SCRIPTS / "train_slim_network.py"
WORKERS, SERVERS, SLICE_BYTES = 3, 2, 500

# By store, in the order in which they are opened.
CASES: list[dict[str, Any]] = [
    {"q": 5},
    {"alpha": 0.4, "beta": 0.1, "p": 2, "q": 3, "c": 3.0, "server_lr": 1.5, "core_delay": 1},
    {"beta": 0, "q": 7, "seed": 3, "explorer": "keys"},
    {"beta": 0.3, "q": 6},
    {"explorer_mean": "all", "beta": 0.1, "q": 5},
    {"alpha": 1, "beta": 1},
    {"q": 5, "values": {"type": "qsgd", "bits": 6, "bucket": 32, "seed": 2}},
    {"alpha": 0.6, "beta": 0.4, "q": 8, "values": "terngrad"},
]


@pytest.fixture(scope="module")
def trained(module_cluster: Cluster) -> Path:
    """Where each worker has left its model and the global one, for all cases."""
    directory = module_cluster.directory
    options = {"slice_bytes": SLICE_BYTES, "deterministic": True}
    module_cluster.run(
        SCRIPT,
        directory,
        *map(json.dumps, CASES),
        workers=WORKERS,
        servers=SERVERS,
        options=options,
    )
    return directory


@pytest.mark.parametrize("store", range(len(CASES)), ids=str)
def test_the_simulation_is_the_cluster_bit_for_bit(trained: Path, store: int) -> None:
    simulation = SlimSimulation(
        make_normalised_network(),
        mx.optimizer.SGD(**OPTIMIZER, rescale_grad=1 / BATCH),
        WORKERS,
        compression.parse({"type": "slim_dp", **CASES[store]}),
        SERVERS,
        SLICE_BYTES,
        store,
    )
    for step in range(STEPS):
        batches = [make_batch(step, rank) for rank in range(WORKERS)]
        simulation.step([(images.asnumpy(), labels.asnumpy()) for images, labels in batches])
    for rank in range(WORKERS):
        found = load(trained, store, rank)
        expected = {"local": simulation.local_values(rank), "global": simulation.values()}
        for what, values in expected.items():
            names = [f"{what}-{key}" for key in simulation.network.parameters]
            assert names == [name for name in found if name.startswith(what)]
            for name, value in zip(names, values):
                np.testing.assert_array_equal(found[name], value, f"worker {rank}, {name}")


def test_bytes_of_compressed_values_are_counted() -> None:
    options = {"alpha": 0.5, "beta": 0.5, "q": 100, "values": {"type": "qsgd", "bucket": 64}}
    network, optimizer = make_normalised_network(), mx.optimizer.SGD(rescale_grad=1 / BATCH)
    method = compression.parse({"type": "slim_dp", **options})
    simulation = SlimSimulation(network, optimizer, 2, method)
    simulation.step([tuple(part.asnumpy() for part in make_batch(0, rank)) for rank in range(2)])
    sent = simulation.values_sent
    size = sum(value.size for value in simulation.values())
    assert sent.elements == 2 * (size // 2)
    # A byte each, and a norm for each 64 of a slice's.
    assert sent.elements * (1 + 4 / 64) <= sent.bytes < sent.elements * 1.5


@pytest.mark.parametrize(
    ("element_bytes", "slice_bytes", "servers"), [(0, 8, 1), (4, 3, 1), (4, 0, 1), (4, 8, 0)]
)
def test_bad_arguments_of_slicing_are_refused_with_their_values(
    element_bytes: int, slice_bytes: int, servers: int
) -> None:
    with pytest.raises(ValueError, match=f"{element_bytes} bytes .*{slice_bytes} .*{servers}"):
        _core.slice_key(1, 10, element_bytes, slice_bytes, servers)


@pytest.mark.parametrize("elements", [-1, 2**64])
def test_a_size_out_of_range_is_refused(elements: int) -> None:
    with pytest.raises(TypeError):
        _core.slice_key(1, elements, 4, 8, 1)
