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
    store = kvstore_ext.P3Worker(kvstore_ext.Options(timeout=60))
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
