"""How many threads encode where the option leaves it to the machine."""

from __future__ import annotations

import os

import kvstore_ext
import mxnet as mx
import pytest
from kvstore_ext.lane.threads_left import threads_left


@pytest.mark.parametrize(
    ("processors", "gpus", "openmp", "expected"),
    [
        (8, 0, "", 1),
        (8, 0, "5", 3),
        (8, 0, "5,2", 3),
        (8, 0, "9", 1),
        (8, 0, "many", 1),
        (8, 2, "", 4),
        (4, 2, "", 3),
        (8, 2, "6", 2),
        (1, 1, "", 1),
    ],
)
def test_it_is_what_mxnet_leaves(
    processors: int, gpus: int, openmp: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    monkeypatch.setattr(mx.context, "num_gpus", lambda: gpus)
    monkeypatch.setenv("OMP_NUM_THREADS", openmp)
    assert threads_left() == expected


def test_without_a_driver_for_a_gpu_mxnet_computes_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise mx.base.MXNetError("no device that can be used")

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(mx.context, "num_gpus", fail)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads_left() == 1


def test_a_worker_has_as_many_as_the_option_says() -> None:
    def threads(count: int) -> int:
        store = kvstore_ext.P3Worker(kvstore_ext.Options(encode_threads=count))
        store.init("key", mx.nd.zeros(1))
        mx.nd.waitall()
        running = len(os.listdir("/proc/self/task"))
        store.close()
        return running

    threads(1)  # begins MXNet's own, which stay
    assert threads(5) - threads(2) == 3
    assert threads(0) == threads(threads_left())
