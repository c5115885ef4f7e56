"""An optimizer's states of more than 4 GiB on a server go into a snapshot and back."""
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.cluster import P3_SERVER, Cluster
from tests.support.paths import python_path

HOARDER = """
import math

import mxnet as mx


@mx.optimizer.Optimizer.register
class Hoarder(mx.optimizer.Optimizer):
    '''Counts its updates, of which a gradient says the number, and has 16 arrays that it doubles at
    each; raises where they are not those of the update before.'''

    def create_state(self, index, weight):
        first = self.first(weight)
        return (mx.nd.zeros((1,)), *(number * first for number in range(1, 17)))

    def first(self, weight):
        if weight.stype == "default":  # a slice, of which nothing changes
            return weight.copy()
        return mx.nd.arange(math.prod(weight.shape)).reshape(weight.shape)

    def update(self, index, weight, gradient, state):
        self._update_count(index)
        if math.prod(weight.shape) < 10_000:  # where it is tried out
            weight[:] += gradient
            return
        values = gradient if gradient.stype == "default" else gradient.data
        updates, *arrays = state
        found, expected = int(updates.asscalar()), int(values.max().asscalar())
        if found != expected:
            raise ValueError(f"{found} updates in the state, and not {expected}")
        first = self.first(weight)
        for number, array in enumerate(arrays, 1):
            if (array == 2 ** expected * number * first).min().asscalar() != 1:
                raise ValueError(f"array {number} of key {index} is not what it was")
            array *= 2
        updates += 1
"""


def train(directory: str, storage: str) -> None:
    """Makes one step, from the last snapshot on; the server has 16 arrays of 262 MiB then."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np
    from hoarder import Hoarder

    store = mx.kv.create("p3")
    store.set_optimizer(Hoarder())
    shape = (67_200, 1024)
    if storage == "default":
        values = np.arange(shape[0] * shape[1], dtype=np.float32) % 100_003
        out = mx.nd.array(values.reshape(shape))
        del values
    else:
        out = mx.nd.sparse.zeros("row_sparse", shape)
    store.init(0, out)
    done = store.restore(directory) or 0
    if storage == "default":
        store.push(0, mx.nd.full(shape, done))
        store.pull(0, out=out)
    else:
        row = (mx.nd.full((1, shape[1]), done), [5])
        store.push(0, mx.nd.sparse.row_sparse_array(row, shape=shape))
        store.row_sparse_pull(0, out=out, row_ids=mx.nd.array([5], dtype="int64"))
    out.wait_to_read()
    store.snapshot(directory, every=1, keep=1)
    store.close()
    print("has made step", done + 1)


@pytest.mark.all_only  # it takes some 14 GiB of memory, and minutes
@pytest.mark.parametrize("storage", ["default", "row_sparse"])
def test_states_over_4_gib_travel_whole(cluster: Cluster, tmp_path: Path, storage: str) -> None:
    (tmp_path / "hoarder.py").write_text(HOARDER)
    try:
        for step in (1, 2):
            job = cluster.start(
                train,
                tmp_path / "snapshots",
                storage,
                workers=1,
                servers=1,
                server=(*P3_SERVER, "--trust", "hoarder"),
                directory=tmp_path,
                environment={"PYTHONPATH": f"{tmp_path}:{python_path()}"},
                options={"silence": 60, "patience": 1200, "timeout": 300},
            )
            job.wait(2400)
            assert f"has made step {step}\n" in job.workers[0].output
            (shared,) = (tmp_path / "snapshots").glob(f"*-step-{step}/shared.states")
            assert shared.stat().st_size > 2**32 + 2**26
    finally:
        shutil.rmtree(tmp_path / "snapshots", ignore_errors=True)
