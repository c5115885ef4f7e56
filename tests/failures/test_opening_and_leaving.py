"""Processes that are lost at the two ends of a job, where ps-lite has barriers of its own."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, await_failure

TIMEOUT = {"timeout": 3}  # seconds: the stores' option


def go_after_greeting() -> None:
    """Ends at once, as soon as the servers have greeted this worker."""
    import os

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    from kvstore_ext.lane.cluster_lane import ClusterLane

    greet = ClusterLane._greet

    def greet_and_go(self: ClusterLane) -> None:
        greet(self)
        os._exit(9)

    ClusterLane._greet = greet_and_go
    mx.kv.create("p3")


def wait_before_greeting(directory: str) -> None:
    """Greets the servers when a file is there."""
    import time
    from pathlib import Path

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    from kvstore_ext.lane.cluster_lane import ClusterLane

    greet = ClusterLane._greet

    def wait_and_greet(self: ClusterLane) -> None:
        print("before the greeting")
        while not Path(directory, "go").exists():
            time.sleep(0.01)
        greet(self)

    ClusterLane._greet = wait_and_greet
    mx.kv.create("p3")


def hang_after_farewell(directory: str) -> None:
    """Trains a step; the worker that comes first hangs once the servers have let it go."""
    import threading
    from pathlib import Path

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    from kvstore_ext.lane.cluster_lane import ClusterLane

    let_go = ClusterLane._let_go

    def hang(self: ClusterLane) -> None:
        try:
            Path(directory, "somebody was here").mkdir()
        except FileExistsError:
            let_go(self)
        else:
            print("after the farewell")
            threading.Event().wait()

    ClusterLane._let_go = hang
    store = mx.kv.create("p3")
    value = mx.nd.ones((3,))
    store.broadcast("key", value, out=value)
    store.pushpull("key", mx.nd.ones((3,)), out=value)
    store.close()


def test_workers_that_are_gone_after_the_greeting(cluster: Cluster) -> None:
    job = cluster.start(go_after_greeting, options=TIMEOUT)
    await_failure(*job.servers, *job.scheduler)
    words = "workers 0 and 1 have not opened their store, within 3 s"
    for process in [*job.servers, *job.scheduler]:
        assert words in process.output


def test_a_server_that_is_gone_before_the_greeting(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.start(wait_before_greeting, tmp_path, options=TIMEOUT)
    for worker in job.workers:
        worker.await_output("before the greeting")
    job.servers[0].send(signal.SIGKILL)
    (tmp_path / "go").touch()
    survivors = [*job.workers, job.servers[1], *job.scheduler]
    await_failure(*survivors)
    for process in survivors:
        assert "has not answered a greeting within 2.4 s" in process.output


def test_a_worker_lost_after_the_farewell_is_not_missed(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.start(hang_after_farewell, tmp_path)
    job.await_output("after the farewell")
    lost = next(worker for worker in job.workers if "after the farewell" in worker.output)
    lost.send(signal.SIGSTOP)
    for process in job.processes:
        if process is not lost:
            assert process.wait() == 0


def be_interrupted(when: str) -> None:
    """Waits for the others; on worker 1 somebody presses Ctrl-C while its store is being closed."""
    import os
    import signal
    import threading
    import time

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    def interrupt() -> None:
        raise KeyboardInterrupt

    store = mx.kv.create("p3")
    if store.rank == 1:
        if when == "at once":
            store._finish = interrupt
        else:
            # Which a shell's background jobs ignore, this one included if the tests are one.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT]).start()
        store.close()
    while not store._worker.failure():
        time.sleep(0.1)
    store.barrier()


@pytest.mark.parametrize("when", ["at once", "while others train"])
def test_who_is_interrupted_while_it_closes_tells_the_others(cluster: Cluster, when: str) -> None:
    job = cluster.start(be_interrupted, when, workers=2, servers=1, options={"silence": 60})
    interrupted, other = sorted(job.workers, key=lambda worker: worker.wait(30))
    assert (interrupted.wait(0), other.wait(0)) == (-signal.SIGINT, 1)
    assert "worker 1: was interrupted while it closed its store" in other.output
