"""Workers that exchange simulated gradients have the parameters of a job's workers."""
from __future__ import annotations

from pathlib import Path

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import compression

from benchmarks.simulations.gradients import Simulation
from tests.support.cluster import Cluster
from tests.support.paths import SCRIPTS
from tests.support.results import assert_same_bits, load_all
from tests.support.tasks.training import BATCH, make_batch, make_network
from tests.support.workers.drop_in import OPTIMIZERS, STEPS

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
    script = SCRIPTS / "drop_in.py"
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
    for found in load_all(trained, task(store), WORKERS):
        assert_same_bits(found, expected)
