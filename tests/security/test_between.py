"""Somebody between the processes of a job with a key can have nothing else taken for true."""

from __future__ import annotations

import secrets

from kvstore_ext.security.job_key import NAME

from tests.support.cluster import AT_ONCE, Cluster

RESENDING = {"PS_RESEND": "1", "PS_RESEND_TIMEOUT": "500"}


def train_through_somebody(rank_between: str, steps: str) -> None:
    """Trains; one worker's words pass somebody who changes a bit in every other step."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np

    from tests.security.between import Between

    between = Between()
    store = mx.kv.create("p3")
    between_this = store.rank == int(rank_between)
    value, numbers = mx.nd.zeros((100_000,)), np.arange(100_000, dtype="float32")
    store.init("value", value)
    for step in range(int(steps)):
        if between_this and step % 2:
            between.change_a_bit()
        store.pushpull("value", mx.nd.array(numbers * (store.rank + 1) + step), out=value)
        np.testing.assert_array_equal(value.asnumpy(), (numbers + step) + (2 * numbers + step))
    if between_this:
        print("bits changed:", between.changed)
    print("right in all steps", flush=True)


def test_a_bit_that_is_changed_on_the_jobs_own_connections_changes_nothing(
    cluster: Cluster,
) -> None:
    """The connection ends and is made again, and ps-lite sends again what was lost."""
    job = cluster.start(
        train_through_somebody,
        *(0, 6),
        options={**AT_ONCE, "shared_memory": False},
        environment={NAME: secrets.token_hex(32), **RESENDING},
    )
    job.wait()
    for worker in job.workers:
        assert "right in all steps" in worker.output
    assert sum("bits changed: 3" in worker.output for worker in job.workers) == 1
