"""What a store without a cluster does when something fails: what one in a cluster does."""
from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kvstore_ext
import mxnet as mx
import pytest

from tests.support.processes import run_python


class Failing(mx.optimizer.SGD):
    """An optimizer that fails in a step."""

    def update_multi_precision(self, index, weight, grad, state) -> None:  # type: ignore
        if index == "weight":
            raise ZeroDivisionError("as the test wants")
        super().update_multi_precision(index, weight, grad, state)


def test_an_optimizer_that_fails_is_told_at_once() -> None:
    store = kvstore_ext.P3Worker(kvstore_ext.Options(patience=60))
    store.set_optimizer(Failing())
    weight = mx.nd.zeros((3,))
    store.broadcast("weight", weight, out=weight)
    begun = time.monotonic()
    store.pushpull("weight", mx.nd.ones((3,)), out=weight)
    with pytest.raises(mx.MXNetError, match="as the test wants"):
        weight.wait_to_read()
    with pytest.raises(kvstore_ext.ClusterError, match="as the test wants"):
        store.push("weight", weight)
    with pytest.raises(kvstore_ext.ClusterError, match="as the test wants"):
        store.close()
    assert time.monotonic() - begun < 30, "nobody waited for the store's limit"


GOING_ON = """
import kvstore_ext
import mxnet as mx

network = mx.gluon.nn.HybridSequential()
for _ in range(4):
    network.add(mx.gluon.nn.Dense(3, in_units=3))
network.initialize()


def train(**how):
    trainer = mx.gluon.Trainer(
        network.collect_params(), "sgd", kvstore="p3", update_on_kvstore=False, **how
    )
    for factor in (1, float("nan") if how else 1, 1):
        with mx.autograd.record():
            loss = network(mx.nd.ones((2, 3)) * factor).sum()
        loss.backward()
        trainer.step(2)
    loss.wait_to_read()
    return trainer


kept = []
for attempt in range(3):
    try:
        train(compression_params={"type": "terngrad", "non_finite": "raise"})
    except mx.MXNetError as error:
        print("failed:", "not finite" in str(error))
        if KEEP:
            kept.append(error)  # with its traceback, and all that its frames hold
    train()._kvstore.close()
print("went on")
"""


@pytest.mark.parametrize("keep", [True, False])
def test_a_script_goes_on_with_another_store_and_the_same_network(
    keep: bool, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(GOING_ON.replace("KEEP", str(keep)))
    ended = run_python(script, fork=True)
    assert ended.stdout.split("\n") == [*["failed: True"] * 3, "went on", ""]


def test_a_store_that_has_failed_says_why_for_ever() -> None:
    store = kvstore_ext.P3Worker()
    store.fail("so")
    another = kvstore_ext.P3Worker()
    for _ in range(2):
        with pytest.raises(kvstore_ext.ClusterError, match="worker 0: so"):
            store.barrier()
        another.barrier()
    another.close()
    with pytest.raises(kvstore_ext.ClusterError, match="worker 0: so"):
        store.push("key", mx.nd.ones((1,)))
    store.close()


@pytest.mark.parametrize("ending", ["raise ValueError('as the test wants')", "store.fail('so')"])
def test_a_script_that_fails_exits_with_an_error(ending: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import kvstore_ext, mxnet as mx\n"
        "store = mx.kv.create('p3')\n"
        "store.init(0, mx.nd.zeros((3,)))\n" + ending
    )
    # Threads race in it, the more so beside others.
    with ThreadPoolExecutor(5) as several:
        list(several.map(lambda _: run_python(script, status=1, fork=True), range(5)))


MANY = """
from concurrent.futures import ThreadPoolExecutor

import kvstore_ext
import mxnet as mx
from kvstore_ext import _core
from kvstore_ext.keys.key_arrays import KeyArrays, PushDetails
from kvstore_ext.lane.lane import make_worker

workers, others, arrays = [], [], []
for _ in range(3):
    transport, other = _core.LocalTransport.make_pair()
    others.append(other)  # which answers nothing
    worker = make_worker(transport, "p3", kvstore_ext.Options(), rank=0, workers=1, servers=1)
    workers.append(worker)
    for number in range(600):
        array = mx.nd.empty((3,))
        key = KeyArrays(worker, number, number, array)
        key.declare(0, _core.PlainCodec())
        key.pushpull([array], [array], PushDetails(0))
        arrays.append(array)
with ThreadPoolExecutor(3) as several:
    list(several.map(lambda worker: worker.abort("so"), workers))
try:
    mx.nd.waitall()
except mx.MXNetError as error:
    print("failed:", str(error).strip().endswith("so"))
for worker in workers:
    worker.stop()
"""


def test_operations_fail_on_several_threads_at_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(MANY)
    assert run_python(script, fork=True).stdout == "failed: True\n"
