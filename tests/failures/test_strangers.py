"""What nobody of a job sends does not end it, and is counted."""

from __future__ import annotations

from tests.support.cluster import AT_ONCE, Cluster, await_failure

GREETINGS = ("77", "-1", "two", "9" * 30)


def greet_as_nobody(*greetings: str) -> None:
    """Greets servers as workers that there are not, and trains; prints how many were refused."""
    import time

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    from kvstore_ext.protocol.commands import GREET, HEAD, command

    store = mx.kv.create("p3")
    for rank in greetings:
        store._send_command_to_servers(HEAD, command(GREET, rank, "host"))
    value = mx.nd.ones((4,))
    store.broadcast("key", value, out=value)
    store.pushpull("key", value, out=value)
    latest = time.monotonic() + 60
    while store.stats()["refused"] < store.num_workers * len(greetings):
        assert time.monotonic() < latest, store.stats()["refused"]
        time.sleep(0.1)
    print("trained:", value.asnumpy().tolist(), "refused:", store.stats()["refused"])


def test_greetings_of_workers_that_there_are_not_end_nothing(cluster: Cluster) -> None:
    job = cluster.run(greet_as_nobody, *GREETINGS, servers=1)
    for worker in job.workers:
        assert "trained: [2.0, 2.0, 2.0, 2.0] refused: 8" in worker.output
    assert "refused what no process of this job sends: a greeting of worker" in (
        job.servers[0].output
    )


def open_as_of_another_job() -> None:
    """Opens a store; worker 1 has another job's name."""
    import os

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    from kvstore_ext.config import Job
    from kvstore_ext.lane.cluster_lane import ClusterLane, _rank_and_size

    send = ClusterLane._greet

    def greet(lane: ClusterLane) -> None:
        if _rank_and_size(lane._native)[0] == 1:
            os.environ["KVSTORE_EXT_JOB"] = "theirs"
            lane._job = Job.from_environment()
        send(lane)

    ClusterLane._greet = greet
    mx.kv.create("p3")


def test_a_worker_of_another_job_is_refused_by_name(cluster: Cluster) -> None:
    environment = {"KVSTORE_EXT_JOB": "ours"}
    job = cluster.start(open_as_of_another_job, options=AT_ONCE, environment=environment)
    await_failure(*job.workers, *job.servers, *job.scheduler)
    for process in job.processes:
        assert "is of job theirs, and server " in process.output
        assert " of job ours: both have come to one scheduler" in process.output


def open_with(name: str) -> None:
    """Opens a store of the job of this name."""
    import os

    os.environ["KVSTORE_EXT_JOB"] = name
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    mx.kv.create("p3")


def test_a_name_that_is_none_is_refused(cluster: Cluster) -> None:
    environment = {"DMLC_NUM_SERVER": "1"}
    job = cluster.start(open_with, "two words", workers=1, servers=0, environment=environment)
    assert job.workers[0].wait() == 1
    assert "KVSTORE_EXT_JOB is 'two words'; it must be up to 64 characters of ASCII without" in (
        job.workers[0].output
    )
