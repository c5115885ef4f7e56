"""Slim-DP in a job: every worker's model follows the paper's algorithm, bit for bit."""
from __future__ import annotations

import json
from dataclasses import asdict, astuple, replace
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext.keys.names import identity

from benchmarks.simulations.slim_dp import cut
from tests.support.cluster import LIMIT, Cluster
from tests.support.paths import SCRIPTS
from tests.support.reference.codecs import QSGD, Half, TernGrad
from tests.support.reference.slim_dp import Options, Simulation, Slice
from tests.support.results import Arrays, load_all
from tests.support.tasks.slim_dp import SHAPES, Case, gradient, initial, make_optimizer

SCRIPT = SCRIPTS / "train_slim.py"
WORKERS, SERVERS, SLICE_BYTES = 3, 2, 400

CASES = {
    "core and explorer": Case({"q": 10}, steps=200),
    "indices travel": Case({"q": 10, "explorer": "keys"}, steps=40),
    "two devices, three steps a round": Case(
        {"alpha": 0.5, "beta": 0.2, "p": 3, "q": 4, "c": 2.0}, devices=2, steps=200
    ),
    "two devices' memory": Case({"q": 10}, devices=2, device="cpu_pinned"),
    "nothing but random": Case({"alpha": 0.2, "beta": 0, "q": 5, "seed": 3}, steps=200),
    "the mean of who pushes": Case({"alpha": 0.2, "beta": 0, "q": 5, "server_lr": 1.5}),
    "the mean of all": Case({"explorer_mean": "all", "q": 10}, steps=200),
    "nothing explored": Case({"alpha": 0.3, "beta": 0.3, "q": 7}),
    "all": Case({"alpha": 1, "beta": 1, "q": 7}),
    "nearly all explored": Case({"alpha": 0.95, "beta": 0.1, "q": 6}),
    "a late core": Case({"q": 6, "core_delay": 3, "c": 0.5, "server_lr": 0.5}, steps=200),
    "qsgd": Case({"q": 8, "values": {"type": "qsgd", "bits": 6, "bucket": 32}}),
    "terngrad": Case({"alpha": 0.6, "beta": 0.4, "q": 8, "values": "terngrad"}),
    "fp16": Case({"q": 8, "values": "fp16"}),
}
VALUES = {"qsgd": QSGD(6, 32), "terngrad": TernGrad(), "fp16": Half()}


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest) -> dict[str, Case]:
    """CASES, of which long ones are cut short without --all, after several cores and explorers."""
    most = 200 if request.config.getoption("--all") else 40
    return {name: replace(case, steps=min(case.steps, most)) for name, case in CASES.items()}


@pytest.fixture(scope="module")
def found(module_cluster: Cluster, cases: dict[str, Case]) -> Path:
    """Where each worker has left its models, for all cases of one job."""
    directory = module_cluster.directory
    written = [json.dumps(asdict(case)) for case in cases.values()]
    options = {"slice_bytes": SLICE_BYTES, "deterministic": True}
    job = module_cluster.start(
        SCRIPT, directory, *written, workers=WORKERS, servers=SERVERS, options=options
    )
    job.wait(3 * LIMIT)  # it has many steps
    return directory


@pytest.mark.parametrize("name", CASES)
def test_local_and_global_models_follow_the_algorithm(
    found: Path, cases: dict[str, Case], name: str
) -> None:
    case, number = cases[name], list(CASES).index(name)
    trained = load_all(found, number, WORKERS)
    simulated = simulate(name, case, number)
    for step, models in enumerate(simulated.steps):
        for rank, model in enumerate(models):
            flat = joined(trained[rank], f"{step}-")
            np.testing.assert_array_equal(flat, model, f"step {step}, worker {rank}")
    for result in trained:
        np.testing.assert_array_equal(joined(result, "global-"), simulated.parameters)


def joined(result: Arrays, prefix: str) -> np.ndarray:
    return np.concatenate([result[f"{prefix}{key}"].reshape(-1) for key in range(len(SHAPES))])


class Simulated:
    """What the workers' models were after each step, and the global one in the end."""

    def __init__(self) -> None:
        self.steps: list[list[np.ndarray]] = []
        self.parameters = np.zeros(0, np.float32)


def simulate(name: str, case: Case, store: int) -> Simulated:
    slices = slices_of(store)
    begin = np.concatenate([initial(key).reshape(-1) for key in range(len(SHAPES))])
    options = {k: v for k, v in case.options.items() if k not in ("p", "explorer", "values")}
    simulation = Simulation(
        Options(**options, values=VALUES.get(name)), WORKERS, slices, begin
    )
    workers = [Local(case, rank, begin) for rank in range(WORKERS)]
    simulated = Simulated()
    for step in range(case.steps):
        for worker in workers:
            worker.train(step)
        if (step + 1) % case.options.get("p", 1) == 0:
            for worker, model in zip(workers, simulation.round([w.model for w in workers])):
                worker.model = model
        simulated.steps.append([worker.model.copy() for worker in workers])
    simulated.parameters = simulation.parameters
    return simulated


class Local:
    """A worker's own training, with MXNet's optimizer."""

    def __init__(self, case: Case, rank: int, begin: np.ndarray) -> None:
        self.model = begin.copy()
        self._case, self._rank = case, rank
        self._updater = mx.optimizer.get_updater(make_optimizer())

    def train(self, step: int) -> None:
        at = 0
        for key, shape in enumerate(SHAPES):
            size = int(np.prod(shape))
            value = mx.nd.array(self.model[at : at + size].reshape(shape))
            whole = gradient(self._case, self._rank, key, step, value.asnumpy())
            parts = [mx.nd.array(whole / self._case.devices)] * self._case.devices
            self._updater(key, mx.nd.add_n(*parts), value)
            self.model[at : at + size] = value.asnumpy().reshape(-1)
            at += size


def slices_of(store: int) -> list[Slice]:
    sizes = {identity(store, key): int(np.prod(shape)) for key, shape in enumerate(SHAPES)}
    return [Slice(*astuple(each)) for each in cut(sizes, SERVERS, SLICE_BYTES)]
