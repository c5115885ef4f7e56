"""A worker hears when the script comes to read parameters, and does not wait for them before."""
from __future__ import annotations

from typing import Callable

import mxnet as mx
import pytest
from kvstore_ext.lane.script_reads import script_reads


class Heard:
    """Stands for a worker."""

    times = 0

    def script_reads(self) -> None:
        self.times += 1


def forward_of_block(hybridized: bool) -> Callable[[], object]:
    network = mx.gluon.nn.Dense(2, in_units=3)
    network.initialize()
    network.hybridize(active=hybridized)
    return lambda: network(mx.nd.ones((1, 3)))


def forward_of_module() -> Callable[[], object]:
    output = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)
    module = mx.mod.Module(output, label_names=None)
    module.bind([("data", (1, 3))], for_training=False)
    module.init_params()
    batch = mx.io.DataBatch([mx.nd.ones((1, 3))])
    return lambda: module.forward(batch)


@pytest.mark.parametrize("kind", ["block", "hybridized", "module"])
def test_every_forward_pass_tells(kind: str) -> None:
    forward = forward_of_module() if kind == "module" else forward_of_block(kind == "hybridized")
    forward()
    heard = Heard()
    script_reads.watch(heard)
    for _ in range(2):
        before = heard.times
        mx.nd.ones((1,)).asnumpy()
        assert heard.times == before
        forward()
        assert heard.times > before


def test_a_worker_does_not_wait_before_the_script_reads() -> None:
    store = mx.kv.create("p3")
    value = mx.nd.ones((1000,))
    store.init("weight", value)

    def push_and_pull() -> float:
        store.pushpull("weight", value, out=value)
        value.wait_to_read()
        return float(store._worker.totals().first)

    assert push_and_pull() > 0  # of a script that never tells, all counts
    store._worker.script_reads()
    before = push_and_pull()
    assert push_and_pull() == before
    store.close()
