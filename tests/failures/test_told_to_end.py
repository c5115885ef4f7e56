"""SIGTERM to one process: the job ends in order, with a snapshot where it takes any."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.cluster import AT_ONCE, Cluster, Job, Process

STATUS = 128 + signal.SIGTERM


def train(snapshots: str) -> None:
    """Adds 1 to a value at each step, from the last snapshot on; a worker waits for nobody."""
    import os
    import time

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    print("is worker", store.rank)
    value = mx.nd.zeros((1000,))
    store.broadcast("value", value, out=value)
    store.set_optimizer(mx.optimizer.create("test", rescale_grad=1 / store.num_workers))
    begin = snapshots and store.restore(snapshots)
    if begin:
        store.pull("value", out=value)
        assert (value == begin).asnumpy().all(), (begin, value)
        print("goes on from", begin)
        return
    for step in range(1_000_000):
        store.pushpull("value", mx.nd.ones((1000,)), out=value)
        if step > 20 and store.rank == 0:
            value.wait_to_read()  # so that others run ahead
        if snapshots:
            store.snapshot(snapshots, every=100_000)
        time.sleep(0.01)
        if step == 40:
            print("trains")
    os._exit(1)


def tell(job: Job, *names: str) -> list[Process]:
    """Sends SIGTERM to the processes of these roles and ranks once all train; returns them."""
    for worker in job.workers:
        worker.await_output("trains")
    told = []
    for name in names:
        role, rank = name.split()
        if role == "worker":
            told += [each for each in job.workers if f"is worker {rank}" in each.output]
        else:
            told += [each for each in job.processes if each.name == name]
    for process in told:
        os.kill(process.pid, signal.SIGTERM)
    return told


@pytest.mark.parametrize(
    "names",
    [["worker 1"], ["server 0"], ["scheduler 0", "server 1", "worker 2", "server 0", "worker 0"]],
)
def test_a_job_that_takes_snapshots_ends_with_one(
    cluster: Cluster, tmp_path: Path, names: list[str]
) -> None:
    job = cluster.start(train, tmp_path / "snapshots", workers=3, options=AT_ONCE)
    told = tell(job, *names)
    for process in [*job.workers, *job.servers]:
        assert process.wait() == (STATUS if process in told or process in job.workers else 0)
    for worker in job.workers:
        assert re.search(r"\w+ \d: told to end by SIGTERM; the job ends", worker.output)
    assert job.scheduler[0].wait() == (-signal.SIGTERM if job.scheduler[0] in told else 0)
    job.await_output("the job ends after step [0-9]+, with a snapshot in ")
    again = cluster.run(train, tmp_path / "snapshots", workers=3)
    for worker in again.workers:
        assert "goes on from" in worker.output


@pytest.mark.parametrize("name", ["worker 1", "server 0"])
def test_a_job_without_snapshots_ends_at_once(cluster: Cluster, name: str) -> None:
    job = cluster.start(train, "", options=AT_ONCE)
    [told] = tell(job, name)
    for process in job.processes:
        status = process.wait()
        assert status is not None
        assert status == STATUS if process is told else status > 0
        assert re.search(rf"{name.split()[0]} \d: told to end by SIGTERM", process.output)
