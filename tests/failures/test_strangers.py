"""What nobody of a job sends does not end it, and is counted."""

from __future__ import annotations

from tests.support.cluster import Cluster

GREETINGS = ("77", "-1", "two", "9" * 30)


def greet_as_nobody(*greetings: str) -> None:
    """Greets servers as workers that there are not, and trains; prints how many were refused."""
    import time

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    from kvstore_ext.protocol.commands import GREET, HEAD, command

    store = mx.kv.create("p3")
    for rank in greetings:
        store._send_command_to_servers(HEAD, command(GREET, rank, "a host"))
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
