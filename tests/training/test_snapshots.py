"""A run that is killed goes on from its last snapshot, and comes to the same bits."""
from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, await_failure
from tests.support.results import assert_same_bits, load
from tests.support.tasks.snapshots import RUNS

OPTIONS = {"slice_bytes": 400, "deterministic": True}
ALONE = ("servers", "workers", "residuals", "slim", "two")  # each in a job that is killed
TOGETHER = tuple(kind for kind in RUNS if kind not in ALONE)  # all but the last are left alone


def train(directory: str, snapshots: str, name: str, last: str, *kinds: str) -> None:
    """Makes runs one after the other, each from its snapshot on where there is one. Of the last one
    worker makes no step beyond `last`, and waits to be killed."""
    import time
    from pathlib import Path

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    from tests.support import results
    from tests.support.tasks.snapshots import RUNS, seed

    # Random numbers differ by a store's number, so that a run needs the same in every job.
    others = [mx.kv.create("p3")]
    for kind in RUNS:
        if kind not in kinds:
            others.append(mx.kv.create("p3"))
            continue
        rank = others[0].rank
        seed(rank)
        run = RUNS[kind]()
        begin = run.store.restore(Path(snapshots) / kind)
        run.begin()
        print(kind, "begins at", begin, flush=True)
        if begin is not None:
            results.save(directory, f"{name}-{kind}-begin", rank, run.values())
        for step in range(begin or 0, 12):
            if step == int(last):
                if kind != kinds[-1]:
                    break
                if rank == 0:
                    print("is to be killed", flush=True)
                    time.sleep(600)
            run.step()
            run.store.snapshot(Path(snapshots) / kind, every=4)
        results.save(directory, f"{name}-{kind}", rank, run.values())
        run.store.close()


@pytest.fixture(scope="module")
def killed(module_cluster: Cluster) -> Path:
    """The snapshots of jobs that were killed in the midst of a step."""
    directory = module_cluster.directory
    left = directory / "killed"
    jobs = [
        module_cluster.start(train, directory, left, "killed", 10, *kinds, options=OPTIONS)
        for kinds in (*([kind] for kind in ALONE), TOGETHER)
    ]
    for job in jobs:
        job.await_output("is to be killed")
        for process in job.processes:
            process.send(signal.SIGKILL)
    return left


@pytest.fixture(scope="module")
def whole(module_cluster: Cluster) -> Path:
    """The results of a job that nobody has disturbed."""
    directory = module_cluster.directory
    module_cluster.run(train, directory, directory / "whole", "whole", -1, *RUNS, options=OPTIONS)
    return directory


def go_on(
    killed: Path, cluster: Cluster, name: str, workers: int = 2, servers: int = 2
) -> Path:
    """Has a job go on from the snapshots of those that were killed; returns where results are."""
    snapshots = shutil.copytree(killed, cluster.directory / f"snapshots of {name}")
    how = {"workers": workers, "servers": servers, "options": OPTIONS}
    job = cluster.run(train, cluster.directory, snapshots, name, -1, *RUNS, **how)
    for worker in job.workers:
        begins = dict(re.findall(r"^(\w+) begins at (\w+)$", worker.output, re.MULTILINE))
        assert set(begins) == set(RUNS)
        assert set(begins.values()) <= {"4", "8"}, begins
    note = f"this run has {workers}, so that it goes on otherwise than that one would have"
    noted = sorted(worker.output.count(note) for worker in job.workers)
    assert noted == [0] * (workers - 1) + [0 if workers == 2 else len(RUNS)]  # rank 0's
    return cluster.directory


@pytest.fixture(scope="module")
def after(killed: Path, module_cluster: Cluster) -> Path:
    """The results of a job like those that were killed."""
    return go_on(killed, module_cluster, "after")


def assert_as_whole(whole: Path, directory: Path, name: str) -> None:
    for kind in RUNS:
        for rank in range(2):
            undisturbed = load(whole, f"whole-{kind}", rank)
            assert undisturbed
            assert_same_bits(load(directory, f"{name}-{kind}", rank), undisturbed, kind)


def test_a_killed_job_goes_on_with_the_same_bits(whole: Path, after: Path) -> None:
    assert_as_whole(whole, after, "after")


def test_so_it_does_on_another_number_of_servers(
    killed: Path, whole: Path, module_cluster: Cluster
) -> None:
    found = go_on(killed, module_cluster, "more servers", servers=3)
    assert_as_whole(whole, found, "more servers")


@pytest.mark.parametrize("workers", [1, 3])
def test_another_number_of_workers_begins_where_the_killed_job_was(
    killed: Path, after: Path, module_cluster: Cluster, workers: int
) -> None:
    """A new one has what rank 0 has, or with Slim-DP the global model."""
    name = f"{workers} workers"
    directory = go_on(killed, module_cluster, name, workers=workers)
    for kind in RUNS:
        for rank in range(workers):
            found = load(directory, f"{name}-{kind}-begin", rank)
            expected = load(after, f"after-{kind}-begin", rank if rank < 2 else 0)
            if kind == "slim" and rank == 2:
                globals_ = {key: value for key, value in expected.items() if "global" in key}
                own = {key[len("global ") :]: value for key, value in globals_.items()}
                expected = {**own, **globals_}
            assert_same_bits(found, expected, f"of {kind}, rank {rank}")


def train_apart(directory: str) -> None:
    """Takes a snapshot to a directory of all workers, then one to a directory of each."""
    import time

    import kvstore_ext
    import mxnet as mx

    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD())
    store.init(0, mx.nd.ones((2,)))
    together, apart = f"{directory}/together", f"{directory}/{store.rank}"
    for place in (together, apart):
        store.push(0, mx.nd.ones((2,)))
        store.snapshot(place, every=1)
    if store.rank == 1:
        time.sleep(6)  # while rank 0 waits for its file
    else:
        try:
            store.restore(together)
        except kvstore_ext.KVStoreError as error:
            print(error, flush=True)
    store.restore(together if store.rank == 0 else apart)


@pytest.mark.all_only
def test_a_directory_that_hosts_do_not_share_is_told(cluster: Cluster) -> None:
    job = cluster.start(train_apart, cluster.directory, options={"timeout": 5})
    job.await_output("worker-1.states did not come within 5 s; all workers must call snapshot")
    job.await_output(
        "worker 0 goes on from .*; worker 1 finds that manifest.json cannot be read: .*: all hosts "
        "must share the directory"
    )
    await_failure(*job.workers)
