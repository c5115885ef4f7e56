"""Workers that benchmarks/simulation.py simulates have the parameters of a job's workers."""
from __future__ import annotations

import sys
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest
from cluster import TESTS, Cluster
from kvstore_ext import compression
from training import BATCH, make_batch, make_network
from workers.drop_in import OPTIMIZERS, STEPS

sys.path.insert(0, str(TESTS.parent / "benchmarks"))
from simulation import Simulation

WORKERS = 2
# What sends gradients; the store called p3 sends them as they are.
STORES = ["p3", "terngrad", "qsgd", "onebit", "signsgd", "dgc"]


def task(store: str) -> str:
    """Of workers/drop_in.py."""
    return f"trainer:sgd:1:{store}"


@pytest.fixture(scope="module")
def trained(module_cluster: Cluster) -> Path:
    """Where two workers have left the parameters that they have in the end, for all stores."""
    directory = module_cluster.directory
    script = TESTS / "workers" / "drop_in.py"
    options = {"slice_bytes": 1000}
    tasks = map(task, STORES)
    module_cluster.run(script, "p3", directory, *tasks, workers=WORKERS, options=options)
    return directory


def simulate(store: str) -> dict[str, np.ndarray]:
    """The parameters after as many steps."""
    arguments = dict(OPTIMIZERS["sgd"], rescale_grad=1 / (BATCH * WORKERS))
    network = make_network()
    simulation = Simulation(
        network,
        mx.optimizer.SGD(**arguments),
        WORKERS,
        None if store == "p3" else compression.parse({"type": store}),
        STORES.index(store),
    )
    for step in range(STEPS):
        batches = [make_batch(step, rank) for rank in range(WORKERS)]
        simulation.step([(images.asnumpy(), labels.asnumpy()) for images, labels in batches])
    return {name: p.data().asnumpy() for name, p in network.collect_params().items()}


@pytest.mark.parametrize("store", STORES)
def test_the_simulation_is_the_cluster_bit_for_bit(trained: Path, store: str) -> None:
    expected = simulate(store)
    for rank in range(WORKERS):
        found = dict(np.load(trained / f"{task(store)}-{rank}.npz"))
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, name)
