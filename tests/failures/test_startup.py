"""A job that cannot start says why on every worker, and ends within its limits."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Iterator

import pytest

from tests.support.cluster import (
    AT_ONCE,
    STOCK_SERVER,
    Cluster,
    Job,
    await_failure,
    free_port,
    limits,
)

LIMITS = limits(8)


def open_store(variable: str = "", value: str = "") -> None:
    """Opens a store, with a variable of the environment set as this says."""
    import os

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    if variable:
        os.environ[variable] = value
    print("opening", value)
    store = mx.kv.create("p3")
    print("opened", store.type)


def open_differently(directory: str, first: str, others: str) -> None:
    """Opens a store; the worker that comes first does it in another way than the others."""
    import json
    import os
    from pathlib import Path

    from kvstore_ext.config import Job, Options
    from kvstore_ext.lane.cluster_lane import ClusterLane

    try:
        (Path(directory) / "somebody was here").mkdir()
        choice = json.loads(first)
    except FileExistsError:
        choice = json.loads(others)
    name = choice.pop("store", "p3")
    options = Options.from_dict({"timeout": 600, **choice})
    try:
        ClusterLane(name, options, Job.from_environment())
    finally:
        os.sys.stdout.flush()


def differ_in_keys(key_of_0: str, shape_of_0: str, dtype_of_0: str) -> None:
    """Initialises key 'b' of shape (2, 3), float32; worker 0 does something else instead."""
    import ast

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    print("opening")
    store = mx.kv.create("p3")
    key, shape, dtype = "b", (2, 3), "float32"
    if store.rank == 0:
        key, shape, dtype = key_of_0, ast.literal_eval(shape_of_0), dtype_of_0
    value = mx.nd.ones(shape, dtype=dtype)
    store.broadcast(key, value, out=value)
    value.wait_to_read()


@pytest.fixture(scope="module")
def waiting(module_cluster: Cluster) -> Iterator[dict[str, Job]]:
    """Jobs that wait for their limits side by side; those of a single worker, for a scheduler."""
    port = str(free_port())
    alone: dict[str, Any] = {"workers": 1, "servers": 0, "options": {"timeout": 3}}
    alone["environment"] = {"DMLC_NUM_SERVER": "1"}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = {}
        for what, script, arguments, how in (
            ("server missing", open_store, [], {"environment": {"DMLC_NUM_SERVER": "3"}}),
            ("worker missing", open_store, [], {"environment": {"DMLC_NUM_WORKER": "3"}}),
            ("different keys", differ_in_keys, ["a", "(2, 3)", "float32"], {}),
            ("stock servers", open_store, [], {"server": STOCK_SERVER}),
            ("nobody", open_store, ["DMLC_PS_ROOT_PORT", port], alone),
            ("no address", open_store, ["DMLC_PS_ROOT_URI", "no.such.host.invalid"], alone),
            ("silent", open_store, ["DMLC_PS_ROOT_PORT", silent.getsockname()[1]], alone),
        ):
            job = module_cluster.start(script, *arguments, **{"options": LIMITS, **how})
            found[what] = job
            for worker in job.workers:  # so that a job's processes come about at the same time
                worker.await_output("opening")
        yield found


def errors(job: Job) -> list[str]:
    """The last line of every worker: its exception."""
    return [process.output.strip().splitlines()[-1] for process in job.workers]


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize(
    ("first", "others"),
    [
        ('{"slice_bytes": 1000}', '{"slice_bytes": 2000}'),
        ('{"store": "p3"}', '{"store": "p4"}'),
    ],
)
def test_workers_that_open_different_stores_say_so_at_once(
    cluster: Cluster, tmp_path: Path, first: str, others: str
) -> None:
    job = cluster.start(open_differently, tmp_path, first, others, workers=3)
    await_failure(*job.workers, *job.servers)
    for error in errors(job):
        assert error.startswith("kvstore_ext.errors.ClusterError: ")
        assert "workers opened different stores: worker " in error
        assert first.strip("{}") in error
        assert others.strip("{}") in error


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize(
    ("key", "shape", "dtype", "found"),
    [
        ("b", "(3, 2)", "float32", "'b' of shape (3, 2), float32"),
        ("b", "(2, 3)", "float64", "'b' of shape (2, 3), float64"),
    ],
)
def test_a_key_initialised_differently_is_said_at_once(
    cluster: Cluster, key: str, shape: str, dtype: str, found: str
) -> None:
    job = cluster.start(differ_in_keys, key, shape, dtype, servers=1, options=AT_ONCE)
    await_failure(*job.workers, *job.servers)
    for error in errors(job):
        assert "workers initialised a key differently" in error
        assert f"worker 0 key {found}" in error
        assert "worker 1 key 'b' of shape (2, 3), float32" in error


def test_different_keys_are_said_within_the_patience(waiting: dict[str, Job]) -> None:
    job = waiting["different keys"]
    await_failure(*job.workers, *job.servers)
    for error in errors(job):
        assert (
            "worker 1 has not initialised key 'a', round 0, which worker 0 did" in error
            or "worker 0 has not initialised key 'b', round 0, which worker 1 did" in error
        )


def test_stock_servers_are_recognised(waiting: dict[str, Job]) -> None:
    job = waiting["stock servers"]
    await_failure(*job.workers)
    for error in errors(job):
        assert "servers 0 and 1 of this job are not P3Servers: start servers" in error
        assert "kvstore-ext --serve" in error
    assert [process.wait() for process in [*job.servers, *job.scheduler]] == [0, 0, 0]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("nobody", "the scheduler at 127.0.0.1:{} cannot be reached within 3 s"),
        ("no address", "{}"),
        ("silent", "the scheduler at 127.0.0.1:{} answers, but within 3 s not all"),
    ],
)
def test_a_scheduler_that_cannot_be_is_named(
    waiting: dict[str, Job], what: str, words: str
) -> None:
    job = waiting[what]
    await_failure(*job.workers)
    (error,) = errors(job)
    assert error.startswith("kvstore_ext.errors.ClusterError: ")
    host_or_port = job.workers[0].output.splitlines()[0].replace("opening ", "")
    assert words.format(host_or_port) in error


@pytest.mark.parametrize(("missing", "workers", "servers"), [("server", 2, 3), ("worker", 3, 2)])
def test_whoever_never_comes_is_waited_for_only_so_long(
    waiting: dict[str, Job], missing: str, workers: int, servers: int
) -> None:
    job = waiting[f"{missing} missing"]
    await_failure(*job.workers)
    for error in errors(job):
        assert "kvstore_ext.errors.ClusterError: the scheduler at 127.0.0.1:" in error
        assert f"within 8 s not all of {workers} workers and {servers} servers" in error
    await_failure(*job.servers, *job.scheduler)


def test_only_workers_have_stores(cluster: Cluster) -> None:
    job = cluster.start(
        open_store,
        "DMLC_ROLE",
        "server",
        workers=1,
        servers=0,
        environment={"DMLC_NUM_SERVER": "1"},
    )
    await_failure(*job.workers)
    (error,) = errors(job)
    assert "created by a server; only workers have stores" in error


def test_a_launcher_that_has_numbered_a_worker_otherwise(cluster: Cluster) -> None:
    job = cluster.run(open_store, servers=1, environment={"KVSTORE_EXT_LAUNCH_RANK": "1"})
    said = "this is worker 0 of the job, although the launcher calls it worker 1"
    assert ["kvstore_ext" in worker.output for worker in job.workers].count(True) == 1
    assert [said in worker.output for worker in job.workers].count(True) == 1


def open_by_name(name: str) -> None:
    """Opens a store of this name and trains it a little."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create(name)
    store.set_optimizer(mx.optimizer.SGD())
    print("goes on", flush=True)
    store.init(0, mx.nd.zeros((3,)))


def test_a_name_that_no_store_has_is_refused(cluster: Cluster) -> None:
    job = cluster.start(open_by_name, "p33", servers=1, options=AT_ONCE)
    for worker in job.workers:
        assert worker.wait() == 1
        assert "there is no store 'p33'; did you mean 'p3'?" in worker.output


def test_servers_of_p3_refuse_mxnets_own_store(cluster: Cluster) -> None:
    job = cluster.start(open_by_name, "dist_sync", options=AT_ONCE)
    for server in job.servers:
        assert server.wait() == 1
        assert "a worker has MXNet's own store, such as dist_sync: workers of" in server.output
        assert "ccopy_reg" not in server.output
    for worker in job.workers:
        worker.wait(2)  # MXNet's own may wait for its servers for ever
        assert "goes on" not in worker.output
