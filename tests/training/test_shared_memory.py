"""Slices between a worker and a server of its own host lie in memory that both have."""
from __future__ import annotations

import re

import pytest

from benchmarks.cluster import Cluster as Network
from tests.support.cluster import Cluster, Job
from tests.support.system_packages import need, needs_root

METHODS = ["", "fp16", "terngrad"]


def train(method: str, elements: str = "300007") -> None:
    """A worker that says what it got, and how many bytes of that needed no network."""
    import os
    import zlib

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np

    store = mx.kv.create("p3")
    if method:
        store.set_gradient_compression({"type": method})
    elements = int(elements)
    gradient = mx.nd.arange(elements) % 1000 * (store.rank + 1)
    weight = mx.nd.zeros((elements,))
    store.broadcast("large", weight, out=weight)
    total = 0
    for _ in range(10):
        store.pushpull("large", gradient, out=weight)
        total = zlib.crc32(weight.asnumpy().tobytes(), total)
        if os.fork() == 0:  # as a script that reads its data does
            os._exit(0)
        os.wait()
    # A result that nobody waits for lies there until it is pulled.
    store.push("large", gradient)
    store.pull("large", out=weight)
    total = zlib.crc32(weight.asnumpy().tobytes(), total)
    values = mx.nd.arange(elements) * (store.rank + 1)
    store.broadcast_from(1, "values", values)
    np.testing.assert_array_equal(values.asnumpy(), 2 * np.arange(elements, dtype="float32"))
    stats = store.stats()
    print(f"got {total}, {stats['refused']} refused")
    print(f"worker {store.rank} shared {stats['shared_memory']} bytes")


def found(pattern: str, job: Job) -> list[str]:
    """What the workers have said, sorted."""
    return sorted(re.search(pattern, worker.output)[1] for worker in job.workers)


def shared(job: Job) -> list[int]:
    """Bytes by rank."""
    return [int(bytes_) for _, bytes_ in sorted(
        re.search(r"worker (\d+) shared (\d+) bytes", worker.output).groups()
        for worker in job.workers
    )]


@pytest.mark.parametrize("method", METHODS)
def test_workers_get_the_same_bits_through_memory_and_through_the_network(
    method: str, cluster: Cluster
) -> None:
    jobs = [
        cluster.run(train, method, options={"deterministic": True, "shared_memory": shares})
        for shares in (True, False)
    ]
    totals = {total for job in jobs for total in found(r"got (\d+, 0) refused", job)}
    assert len(totals) == 1
    # Most of it: ten pushes and their results; the first value and an array come on top.
    assert min(shared(jobs[0])) > (0 if method else 2 * 10 * 4 * 300_007)
    assert shared(jobs[1]) == [0, 0]


def test_what_finds_no_room_takes_the_network(cluster: Cluster) -> None:
    # Worker 2's slices wait for the others', in more blocks than there are; or the only slice is
    # longer than all blocks together, whose parts lie there until the last has come.
    elements = 2_000_003
    how = {"workers": 3, "servers": 1}
    jobs = [
        cluster.run(train, "", elements, options={"deterministic": True, **options}, **how)
        for options in ({"slice_bytes": 100_000}, {"slice_bytes": 10_000_000},
                        {"shared_memory": False})
    ]
    totals = {total for job in jobs for total in found(r"got (\d+, 0) refused", job)}
    assert len(totals) == 1
    assert min(shared(jobs[0]) + shared(jobs[1])) > 0
    # Eleven pushes and their results; the first value and the array of one worker come on top.
    assert max(shared(jobs[1])) < 2 * 11 * 4 * elements


@needs_root
def test_hosts_share_no_memory(cluster: Cluster) -> None:
    need("tc")
    with Network(hosts=5) as network:
        apart = cluster.run(train, "", hosts=network.hosts)
        scheduler, *others = network.hosts
        beside = cluster.run(train, "", hosts=[scheduler, *others[:2], *others[:2]])
    assert shared(apart) == [0, 0]
    one_of_two = 10 * 4 * 300_007
    assert all(one_of_two / 2 < bytes_ < 2 * one_of_two for bytes_ in shared(beside))
