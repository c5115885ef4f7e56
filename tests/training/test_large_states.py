"""An optimizer's states of more than 4 GiB on a server go to a worker and back."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cluster import P3_SERVER, Cluster
from tests.support.paths import python_path

HOARDER = """
import math

import mxnet as mx


@mx.optimizer.Optimizer.register
class Hoarder(mx.optimizer.Optimizer):
    def create_state(self, index, weight):
        size = math.prod(weight.shape)
        return tuple(mx.nd.arange(i, i + size).reshape(weight.shape) for i in range(16))

    def update(self, index, weight, gradient, state):
        self._update_count(index)
        if weight.stype == "default":  # where it is tried out
            weight[:] += gradient
"""


def take_and_put_back() -> None:
    """Has the server make 16 arrays of 262 MiB, fetches them, and puts others in their place."""
    import gc

    import kvstore_ext  # noqa: F401
    import mxnet as mx
    from hoarder import Hoarder

    store = mx.kv.create("p3")
    store.set_optimizer(Hoarder())
    shape = (67_200, 1024)
    rows = mx.nd.sparse.zeros("row_sparse", shape)
    store.init(0, rows)
    store.push(0, mx.nd.sparse.row_sparse_array((mx.nd.ones((1, 1024)), [5]), shape=shape))
    store.row_sparse_pull(0, out=rows, row_ids=mx.nd.array([5], dtype="int64"))
    for factor in (1, -2):
        states = store._updater.collect()
        assert 16 * shape[0] * shape[1] * 4 > 2**32 + 2**26
        for number, array in enumerate(states[0]):
            right = factor * mx.nd.arange(number, number + array.size).reshape(shape)
            assert (array == right).min().asscalar() == 1, (factor, number)
            array *= -2
            del right
        if factor == 1:
            store._updater.resume(states)
        del states, array
        gc.collect()
    store.close()


@pytest.mark.all_only  # it takes some 14 GiB of memory, and minutes
def test_states_over_4_gib_travel_whole(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "hoarder.py").write_text(HOARDER)
    cluster.start(
        take_and_put_back,
        workers=1,
        servers=1,
        server=(*P3_SERVER, "--trust", "hoarder"),
        directory=tmp_path,
        environment={"PYTHONPATH": f"{tmp_path}:{python_path()}"},
        options={"silence": 60, "patience": 1200, "timeout": 300},
    ).wait(2400)
