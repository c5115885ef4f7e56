"""ec_dnn in a job: the papers' algorithm in NumPy, the simulation and three workers agree."""
from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulations.ec_dnn import run
from tests.support.cluster import Cluster, await_failure
from tests.support.paths import SCRIPTS
from tests.support.reference import ec_dnn as reference
from tests.support.results import assert_same_bits, load, load_all
from tests.support.tasks.ec_dnn import (
    BATCH,
    CLASSES,
    RATE,
    SEED,
    SIZES,
    TASKS,
    Task,
    examples,
    initial,
    train,
)
from tests.support.workers.ec_dnn import SHAPES, array_of

WORKERS = len(SIZES)
RANKS = range(WORKERS)
# Sums of three workers depend on the order unless they are deterministic.
OPTIONS = {"slice_bytes": 20000, "deterministic": True}
ENSEMBLES = ["ec_dnn_s", "ec_dnn_r", "ec_dnn_m", "no diversity", "e_dnn"]


@pytest.fixture(scope="module")
def found(module_cluster: Cluster) -> Path:
    """Where three workers and two servers have left what they found."""
    directory = module_cluster.directory
    module_cluster.run(SCRIPTS / "ec_dnn.py", directory, workers=WORKERS, options=OPTIONS)
    return directory


def test_every_worker_gets_every_workers_arrays(found: Path) -> None:
    for rank in RANKS:
        arrays = load(found, "arrays", rank)
        assert len(arrays) == 2 * WORKERS * len(SHAPES)
        for name, array in arrays.items():
            turn, root, dtype = name.split()
            expected = array_of(int(root), dtype, int(turn))
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected)


def test_a_network_holds_each_model_in_turn_and_then_its_own_again(found: Path) -> None:
    for rank in RANKS:
        for seen in load(found, "in turn", rank).values():
            assert seen.tolist() == [1, 2, 3, rank + 1]


@pytest.mark.parametrize("name", TASKS)
def test_a_job_has_the_bits_of_the_simulation(found: Path, name: str) -> None:
    simulated = run(WORKERS, lambda store: train(TASKS[name], store))
    for rank in RANKS:
        assert_same_bits(load(found, name, rank), simulated[rank], f"of worker {rank}")


# Of each kind of trainer one, after how many of whose steps a job is killed. In all of them that
# comes after the first round, within local steps or those of compression.
INTERRUPTED = {
    "e_dnn": 7,
    "ma_dnn with momentum": 4,
    "ec_dnn_r": 9,
    "wide": 11,
    "ec_dnn_m": 17,
}


def go_on(directory: str, snapshots: str, name: str, until: str) -> None:
    """Trains by some of the tasks, each from its snapshot on where there is one. With `until` one
    worker makes no further step of the last one, and waits to be killed; others are left alone."""
    import json
    import time
    from pathlib import Path

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    from tests.support import results
    from tests.support.tasks.ec_dnn import TASKS, train

    class LeftAlone(Exception):  # noqa: N818
        pass

    limits = json.loads(until)
    *_, last = limits
    # All at once: a process that closes its only store leaves the job.
    stores = [mx.kv.create("p3") for _ in limits]
    for store, (task, limit) in zip(stores, limits.items()):

        def step(steps: int, task: str = task, limit: int = limit, rank: int = store.rank) -> None:
            if steps != limit:
                return
            if task != last:
                raise LeftAlone
            if rank == 0:
                print("is to be killed", flush=True)
                time.sleep(60)

        try:
            found = train(TASKS[task], store, Path(snapshots) / task, step)
        except LeftAlone:
            continue
        results.save(directory, f"{name} {task}", store.rank, found)


@pytest.fixture(scope="module")
def snapshots(module_cluster: Cluster) -> Path:
    """Those of a job that was killed in the midst of a round."""
    directory = module_cluster.directory
    limits = json.dumps(INTERRUPTED)
    job = module_cluster.start(
        go_on, directory, directory / "killed", "killed", limits, workers=WORKERS, options=OPTIONS
    )
    job.await_output("is to be killed")
    for process in job.processes:
        process.send(signal.SIGKILL)
    return directory / "killed"


def test_a_killed_job_goes_on_with_the_same_bits(
    found: Path, snapshots: Path, module_cluster: Cluster
) -> None:
    never = json.dumps(dict.fromkeys(INTERRUPTED, -1))
    module_cluster.run(
        go_on, found, snapshots, "after", never, workers=WORKERS, servers=3, options=OPTIONS
    )
    for name, killed_at in INTERRUPTED.items():
        for rank in RANKS:
            after, whole = (load(found, task, rank) for task in (f"after {name}", name))
            assert 0 < after.pop("begin") < killed_at
            assert {"trained 0", "local 0", "global outputs"} <= after.keys()
            assert_same_bits(after, {key: whole[key] for key in after}, f"of {name}, {rank}")


def test_another_number_of_workers_is_another_ensemble(
    snapshots: Path, module_cluster: Cluster
) -> None:
    never = json.dumps({"ec_dnn_m": -1})
    job = module_cluster.start(
        go_on, module_cluster.directory, snapshots, "fewer", never, options=OPTIONS
    )
    await_failure(*job.workers)
    words = "it has a number of workers 3; this run has 2"
    assert any(re.search(words, worker.output) for worker in job.workers)


def draws(task: Task, rank: int) -> reference.Worker:
    """Which examples a worker takes when: all once in random order before any comes again."""
    random = np.random.RandomState([SEED, rank])
    inputs, labels = examples(rank)
    size = len(labels)
    method = task.make_method()
    worker = reference.Worker(inputs.astype(np.float64), np.eye(CLASSES)[labels], [], [], [])

    def stream(left: list[int], count: int, batches: int) -> np.ndarray:
        while len(left) < batches * BATCH:
            left.extend(random.permutation(count))
        taken = [left.pop(0) for _ in range(batches * BATCH)]
        return np.array(taken).reshape(batches, BATCH)

    order: list[int] = []
    for _ in range(task.rounds):
        worker.local.append(stream(order, size, task.tau))
        worker.chosen.append(random.permutation(size)[: round(method.mu * size)])
        worker.compression.append(stream([], len(worker.chosen[-1]), task.tau // 2))
    return worker


@pytest.mark.parametrize("name", ["ec_dnn_s", "ec_dnn_r", "ec_dnn_m", "no diversity"])
def test_rounds_follow_the_paper(found: Path, name: str) -> None:
    task = TASKS[name]
    method = task.make_method()
    models = [tuple(value.astype(np.float64) for value in initial(task, k)) for k in RANKS]
    workers = [draws(task, rank) for rank in RANKS]
    expected = reference.ec_dnn(
        task.method, models, workers, task.rounds, method.alpha, method.beta, RATE
    )
    for rank in RANKS:
        arrays = load(found, name, rank)
        for i in range(2):
            np.testing.assert_allclose(
                arrays[f"trained {i}"], expected[rank][i], rtol=2e-4, atol=2e-5
            )


@pytest.mark.parametrize("name", ENSEMBLES)
def test_the_ensembles_cross_entropy_is_at_most_the_mean_of_the_models(
    found: Path, name: str
) -> None:
    for rank in RANKS:
        arrays = load(found, name, rank)
        losses = [value for key, value in arrays.items() if key.startswith("losses")]
        assert len(losses) == (1 if name == "e_dnn" else TASKS[name].rounds)
        for together, alone in losses:
            assert together <= alone
            assert alone > 0


@pytest.mark.parametrize(("name", "momentum"), [("ma_dnn", 0.0), ("ma_dnn with momentum", 0.9)])
def test_averaging_at_every_step_is_synchronous_sgd(
    found: Path, name: str, momentum: float
) -> None:
    """Gradients are weighed by the workers' numbers of examples."""
    task = TASKS[name]
    model = tuple(value.astype(np.float64) for value in initial(task, 0))  # worker 0's
    state = [np.zeros_like(value) for value in model]
    orders = []
    for rank in RANKS:
        random = np.random.RandomState([SEED, rank])
        stream = [i for _ in range(8) for i in random.permutation(SIZES[rank])]
        orders.append(np.array(stream[: task.rounds * BATCH]).reshape(task.rounds, BATCH))
    for number in range(task.rounds):
        total = [np.zeros_like(value) for value in model]
        for rank in RANKS:
            inputs, labels = (part[orders[rank][number]] for part in examples(rank))
            error = reference.outputs(model, inputs.astype(np.float64)) - np.eye(CLASSES)[labels]
            share = SIZES[rank] / sum(SIZES) / BATCH
            total[0] += share * error.T @ inputs
            total[1] += share * error.sum(axis=0)
        state = [momentum * s - RATE * g for s, g in zip(state, total)]
        model = tuple(value + s for value, s in zip(model, state))
    for rank in RANKS:
        arrays = load(found, name, rank)
        for i in range(2):
            np.testing.assert_allclose(arrays[f"trained {i}"], model[i], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ENSEMBLES)
def test_final_models(found: Path, name: str) -> None:
    """The local one has the smallest training loss of all workers' examples; the global one is
    the ensemble."""
    results = load_all(found, name, WORKERS)
    trained = [(arrays["trained 0"], arrays["trained 1"]) for arrays in results]
    inputs, labels = (np.concatenate(parts) for parts in zip(*map(examples, RANKS)))
    outputs = np.stack([reference.outputs(model, inputs) for model in trained])
    losses = -np.log(outputs[:, np.arange(len(labels)), labels]).mean(axis=1)
    weights = np.full(WORKERS, 1 / WORKERS)
    if name == "ec_dnn_r":
        design = outputs.reshape(WORKERS, -1).T
        weights = np.linalg.lstsq(design, np.eye(CLASSES)[labels].ravel(), rcond=None)[0]
    together = np.tensordot(weights, outputs, axes=1)
    for arrays in results:
        np.testing.assert_allclose(arrays["training losses"], losses, rtol=1e-5)
        np.testing.assert_array_equal(arrays["local 0"], trained[losses.argmin()][0])
        np.testing.assert_allclose(arrays["local outputs"], outputs[losses.argmin()], atol=1e-5)
        np.testing.assert_allclose(arrays["global outputs"], together, atol=1e-4)


def test_errors_are_those_of_the_models(found: Path) -> None:
    """e_dnn measures them on the models that it ends with."""
    results = load_all(found, "e_dnn", WORKERS)
    inputs, labels = (np.concatenate(parts) for parts in zip(*map(examples, RANKS)))
    outputs = [reference.outputs((a["trained 0"], a["trained 1"]), inputs) for a in results]
    expected = [(found.argmax(axis=1) != labels).mean() for found in [*outputs, sum(outputs)]]
    for arrays in results:
        np.testing.assert_allclose(arrays[f"errors {TASKS['e_dnn'].rounds}"], expected)


def test_a_round_sends_two_models_and_receives_two_of_every_other_worker(found: Path) -> None:
    rounds = 3
    for name, models, portion in (
        ("wide", 2, 1),
        ("wide without diversity", 1, 1),
        ("wide float16", 2, 0.5),
    ):
        for rank in RANKS:
            sent, received, size = load(found, f"{name} bytes", rank)["bytes"]
            assert 1 <= sent / (rounds * models * portion * size) <= 1.02, (name, rank)
            others = WORKERS - 1
            assert 1 <= received / (rounds * models * others * portion * size) <= 1.02, (name, rank)


def test_models_that_come_one_after_the_other_are_the_same(found: Path) -> None:
    for rank in RANKS:
        assert_same_bits(load(found, "wide", rank), load(found, "wide, one after the other", rank))


def test_float16_rounds_the_models_of_others_alone(found: Path) -> None:
    for rank in RANKS:
        exact, rounded = load(found, "wide", rank), load(found, "wide float16", rank)
        np.testing.assert_allclose(rounded["losses 1"], exact["losses 1"], rtol=5e-3)
        assert (rounded["losses 1"] != exact["losses 1"]).all()


def test_float16_has_the_nearest_number_for_what_is_beyond_it(found: Path) -> None:
    for rank in RANKS:
        own, largest = -1e6 * (rank + 1), -65504
        seen = load(found, "beyond float16", rank)["in turn"]
        assert list(seen) == [own if rank == each else largest for each in RANKS] + [own]


def test_averages_take_running_statistics_along(found: Path) -> None:
    """All workers end alike, statistics of batch normalisation included."""
    results = load_all(found, "wide ma_dnn", WORKERS)
    names = [key for key in results[0] if key.startswith("trained")]
    assert len(names) == 9
    for name in names:
        for other in results[1:]:
            np.testing.assert_array_equal(other[name], results[0][name], name)
    ensembled = [load(found, "wide", rank)["trained 3"] for rank in RANKS]
    assert (ensembled[0] != ensembled[1]).any()
