"""Compression that cannot go on says why on every worker."""
from __future__ import annotations

import pytest

from tests.support.cluster import AT_ONCE, Cluster, Job, await_failure


def push_not_a_number(sharing: str) -> None:
    """Rank 1 pushes a gradient with a value that is not a number; nobody wants to skip it."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    store.set_gradient_compression(
        {"type": "terngrad", "non_finite": "raise", "scaler_sharing": sharing == "shared"}
    )
    store.init("key", mx.nd.zeros((5,)))
    value = mx.nd.full((5,), 1 if store.rank == 0 else float("nan"))
    out = mx.nd.zeros((5,))
    store.pushpull("key", value, out=out)
    out.wait_to_read()


def train_by_not_a_number(values: str) -> None:
    """Rank 1 trains a model of its own by a gradient that is not a number."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": "slim_dp", "p": 1, "values": values})
    store.set_optimizer(mx.optimizer.SGD())
    value = mx.nd.zeros((100,))
    store.broadcast("key", value, out=value)
    gradient = mx.nd.full((100,), 1 if store.rank == 0 else float("nan"))
    store.pushpull("key", gradient, out=value)
    value.wait_to_read()


def open_with_other_options(kind: str, option: str, value: str) -> None:
    """Rank 0 compresses in another way than the others."""
    import json

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    options = {option: json.loads(value)} if store.rank == 0 else {}
    store.set_gradient_compression({"type": kind, **options})
    out = mx.nd.zeros((5,))
    store.broadcast("key", mx.nd.zeros((5,)), out=out)
    out.wait_to_read()


def leave_before_the_second_round(ends: str) -> None:
    """Rank 1 pushes once, then ends, or waits for longer than anybody."""
    import time

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("terngrad")
    out = mx.nd.zeros((5,))
    store.broadcast("key", mx.nd.ones((5,)), out=out)
    for number in range(2):
        if store.rank == 1 and number == 1:
            if ends == "waits":
                time.sleep(60)
            return
        store.pushpull("key", mx.nd.ones((5,)), out=out)
        out.wait_to_read()


def assert_all_say(job: Job, *words: str) -> None:
    for worker in job.workers:
        assert worker.wait() not in (0, None)
        assert all(word in worker.output for word in words), worker.name


@pytest.mark.parametrize("sharing", ["shared", "unshared"])
def test_a_gradient_that_is_not_finite_can_end_the_job(cluster: Cluster, sharing: str) -> None:
    job = cluster.start(push_not_a_number, sharing, servers=1)
    assert_all_say(job, "worker 1: the gradient of key 'key', round 1", "not finite")


def test_an_update_that_is_not_finite_ends_the_job_where_it_is_compressed(
    cluster: Cluster,
) -> None:
    jobs = [
        cluster.start(train_by_not_a_number, values, servers=1) for values in ("fp16", "terngrad")
    ]
    for job in jobs:
        assert_all_say(job, "worker 1: the gradient of key 'key', round 1", "not finite")


@pytest.mark.parametrize(
    ("kind", "option", "value", "found", "others"),
    [
        ("terngrad", "clip_sigma", "3", "clip_sigma=3.0", "clip_sigma=2.5"),
        ("qsgd", "bits", "4", "bits=4", "bits=8"),
        ("onebit", "exclude", '["key"]', "float32", "OneBit("),
    ],
)
def test_workers_with_different_options_are_told_both(
    cluster: Cluster, kind: str, option: str, value: str, found: str, others: str
) -> None:
    job = cluster.start(open_with_other_options, kind, option, value, servers=1, options=AT_ONCE)
    assert_all_say(job, "initialised a key differently", found, others)


def test_a_worker_that_others_wait_for_is_named(cluster: Cluster) -> None:
    options = {"silence": 6, "patience": 6}
    left, waits = (
        cluster.start(leave_before_the_second_round, ends, options=options)
        for ends in ("leaves", "waits")
    )
    left.await_output("Error: .*worker 1 has left, but worker 0 pushed key 'key', round 2")
    waits.await_output(
        "Error: .*worker 1 has not sent the scaler of key 'key', round 2, which worker 0 did"
    )
    await_failure(*left.servers, *waits.servers)
