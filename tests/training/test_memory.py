"""What servers and workers hold is bounded, and does not grow with the number of rounds."""
from __future__ import annotations

import gc
import re
from functools import lru_cache
from typing import Callable

import mxnet as mx
import pytest

from tests.support import heap
from tests.support.cluster import Cluster, Job, Process
from tests.support.paths import SCRIPTS

MEGABYTE = 1 << 20
KEYS = 20  # of a megabyte each
SLACK = 12 * MEGABYTE  # of a process that does what it has not done before


def train_large_keys(dtype: str, devices: str) -> None:
    """A worker whose rank 1 is always late, so that servers hold the other's gradients."""
    import time

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np

    from tests.support.workers.measured_server import status

    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1))
    shape = ((1 << 20) // np.dtype(dtype).itemsize,)

    def arrays() -> list:
        return [mx.nd.ones(shape, mx.cpu(i), dtype) for i in range(int(devices))]

    keys = range(20)
    weights, gradients = [arrays() for _ in keys], [arrays() for _ in keys]
    mx.nd.waitall()
    before = status("VmRSS")
    for key in keys:
        store.broadcast(key, weights[key][0], out=weights[key])
    for _ in range(3):
        mx.nd.waitall()
        if store.rank == 1:
            store.barrier()
        pushed = store.stats()["sent"].get("push", 0)
        for key in keys:
            store.pushpull(key, gradients[key], out=weights[key], priority=-key)
        if store.rank != 1:
            # The last of them arrive a moment later, which nobody tells this worker.
            while store.stats()["sent"].get("push", 0) < pushed + len(keys) * (1 << 20):
                time.sleep(0.01)
            store.barrier()
    mx.nd.waitall()
    print(f"grew by {status('VmHWM') - before} bytes")


def number(process: Process, what: str) -> int:
    """The bytes that a process has written of once."""
    (found,) = re.findall(rf"{what} (\d+) bytes", process.output)
    return int(found)


@pytest.fixture(scope="module")
def ended(module_cluster: Cluster) -> Callable[[str, int], Job]:
    """Gives a job that has trained keys of a type on a number of devices, the same one again."""
    server = [str(SCRIPTS / "measured_server.py")]

    @lru_cache(maxsize=None)
    def run(dtype: str, devices: int) -> Job:
        # A fork has yet to map what an interpreter of its own has from its imports on.
        places = {"workers": 2, "servers": 1, "server": server, "fork": False}
        return module_cluster.run(train_large_keys, dtype, devices, **places)

    return run


ARRAYS = pytest.mark.parametrize(
    ("dtype", "devices"),
    [pytest.param("float32", 1, marks=pytest.mark.all_only), ("float32", 2), ("float16", 1)],
)


@ARRAYS
def test_servers_hold_few_times_their_share_of_the_keys(
    ended: Callable[[str, int], Job], dtype: str, devices: int
) -> None:
    share = KEYS * MEGABYTE
    shares = 3 if dtype == "float16" else 2.5  # whose sums are twice as wide
    for process in ended(dtype, devices).servers:
        held, grown = number(process, "held at most"), number(process, "grew by")
        assert 1.5 * share < held <= shares * share, "it is about 2 while a worker is late"
        assert dtype == "float16" or grown < shares * share + SLACK


@ARRAYS
def test_servers_import_no_estimators(
    ended: Callable[[str, int], Job], dtype: str, devices: int
) -> None:
    for process in ended(dtype, devices).servers:
        assert "has scikit-learn: False" in process.output


@ARRAYS
def test_workers_hold_one_copy_of_the_gradients(
    ended: Callable[[str, int], Job], dtype: str, devices: int
) -> None:
    for process in ended(dtype, devices).workers:
        assert number(process, "grew by") < KEYS * MEGABYTE + SLACK


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("p3", None),
        ("p3", "adam"),
        pytest.param("terngrad", None, marks=pytest.mark.all_only),
        pytest.param("dgc", None, marks=pytest.mark.all_only),
        ("slim_dp", "sgd"),
    ],
)
def test_nothing_grows_with_the_number_of_rounds(
    monkeypatch: pytest.MonkeyPatch, name: str, optimizer: str | None
) -> None:
    monkeypatch.setenv("KVSTORE_EXT_OPTIONS", '{"slice_bytes": 64}')
    store = mx.kv.create(name)
    if optimizer:
        store.set_optimizer(mx.optimizer.create(optimizer, learning_rate=0.01))
    weights = [mx.nd.zeros((16,)) for _ in range(3)]
    gradients = [mx.nd.ones((16,)) for _ in weights]
    for key, weight in enumerate(weights):
        store.broadcast(key, weight, out=weight)

    def rounds(count: int) -> int:
        for _ in range(count):
            for key, weight in enumerate(weights):
                store.pushpull(key, gradients[key], out=weight)
            mx.nd.waitall()
        gc.collect()
        return heap.live()

    marks = [rounds(500), rounds(1000), rounds(1000)]
    store.close()
    # 3,000 rounds of a slice each: what each left behind would show in both, where a table of
    # MXNet's or of Python's that becomes larger now and then shows in one.
    assert min(after - before for before, after in zip(marks, marks[1:])) < 3_000 * 8
