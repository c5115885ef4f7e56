"""Dead is not slow: who gives signs of life is waited for, and named meanwhile."""

from __future__ import annotations

import re
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster, Job

SILENCE = 4  # seconds: the stores' option; who waits for twice as long says for whom
OPTIONS = {"silence": SILENCE, "patience": 0}


def come_late(where: str) -> None:
    """Worker 1 holds the GIL for a while, before it does what worker 0 does."""
    import ctypes

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    weight = mx.nd.zeros((300,))
    store.broadcast("weight", weight, out=weight)
    rows = mx.nd.zeros((4, 2)).tostype("row_sparse")
    if where == "sparse":
        store.init("rows", rows)
    if store.rank == 1:
        ctypes.PyDLL(None).sleep(11)
    if where == "dense":
        store.pushpull("weight", mx.nd.ones((300,)), out=weight)
        weight.wait_to_read()
    elif where == "sparse":
        store.push("rows", mx.nd.ones((4, 2)).tostype("row_sparse"))
        store.row_sparse_pull("rows", out=rows, row_ids=mx.nd.arange(4, dtype="int64"))
        rows.wait_to_read()
    elif where == "barrier":
        store.barrier()
    if where != "leave":
        print("came together")


def wait_behind_a_full_terminal(directory: str) -> None:
    """Nobody reads what worker 1 says, as where Ctrl-S has stopped the terminal, and it is told for
    whom it waits."""
    import contextlib
    import os
    import time

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    weight = mx.nd.zeros((300,))
    store.broadcast("weight", weight, out=weight)
    before = os.dup(2)
    if store.rank == 1:
        _, end = os.pipe()
        os.set_blocking(end, False)
        for size in (65536, 1):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(end, b"x" * size)
        os.set_blocking(end, True)
        os.dup2(end, 2)
    else:
        time.sleep(10)
    store.pushpull("weight", mx.nd.ones((300,)), out=weight)
    weight.wait_to_read()
    os.dup2(before, 2)
    with open(f"{directory}/{store.rank}", "w") as file:
        file.write("came together")


def train_until(directory: str) -> None:
    """Trains until there is a file."""
    import os

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    weight, stop = mx.nd.zeros((300,)), mx.nd.zeros((1,))
    store.broadcast(["weight", "stop"], [weight, stop], out=[weight, stop])
    step = 0
    while stop.asscalar() == 0:
        store.pushpull("weight", mx.nd.ones((300,)), out=weight)
        store.pushpull("stop", mx.nd.array([os.path.exists(f"{directory}/stop")]), out=stop)
        step += 1
        if step == 3:
            print("training")


WAITED_FOR = {
    "dense": "pushed key 'weight', round 1",
    "sparse": "pushed key 'rows', round 1",
    "barrier": "come to barrier 1",
    "leave": "closed its last store",
}


@pytest.fixture(scope="module")
def late(module_cluster: Cluster) -> dict[str, Job]:
    """Jobs that wait for worker 1 side by side."""
    return {
        where: module_cluster.start(come_late, where, servers=1, options=OPTIONS)
        for where in WAITED_FOR
    }


@pytest.fixture(scope="module")
def unread(module_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Path]:
    """A job whose second worker has a terminal that nobody reads, and where it writes."""
    directory = tmp_path_factory.mktemp("unread")
    options = {"silence": 2, "patience": 0}
    how: dict[str, Any] = {"servers": 1, "options": options}
    return module_cluster.start(wait_behind_a_full_terminal, directory, **how), directory


@pytest.mark.usefixtures("late", "unread")  # which wait meanwhile
def test_a_job_that_is_stopped_as_a_whole_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.start(train_until, tmp_path, options=OPTIONS)
    for worker in job.workers:
        worker.await_output("training")
    for process in job.processes:
        process.send(signal.SIGSTOP)
    time.sleep(2 * SILENCE)
    for process in job.processes:
        process.send(signal.SIGCONT)
    (tmp_path / "stop").touch()
    job.wait()


def test_who_cannot_say_for_whom_it_waits_waits_on(unread: tuple[Job, Path]) -> None:
    job, directory = unread
    job.wait()
    assert [(directory / str(rank)).read_text() for rank in (0, 1)] == ["came together"] * 2


@pytest.mark.parametrize("where", WAITED_FOR)
def test_a_worker_that_holds_the_gil_is_waited_for_and_named(
    late: dict[str, Job], where: str
) -> None:
    late[where].wait()
    said = (
        rf"kvstore_ext worker 0 waits: worker 1 has not {WAITED_FOR[where]}, which worker 0 did, "
        rf"for \d+ s \(worker 1 on {re.escape(socket.gethostname())}\); there are signs of life, "
        "and the option patience sets no limit"
    )
    late[where].await_output(said)
