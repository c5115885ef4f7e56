"""The share of waiting that examples show, where it is known: on a slow link, beside a slow layer.

In both the larger part is more than ten times the other one, so that no noise turns them round.
"""
from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cluster import Cluster, Link
from tests.support.paths import EXAMPLES, python_path
from tests.support.processes import LIMIT
from tests.support.system_packages import need, needs_root


def watch_steps(examples: str, width: str, seconds: str) -> None:
    """A worker's: prints the share of waiting in steps of a layer of so many inputs and outputs,
    after which another one computes for so long."""
    import sys
    import time

    import kvstore_ext  # noqa: F401 - before mxnet
    import mxnet as mx
    from mxnet import autograd, gluon

    sys.path.insert(0, examples)
    import waiting

    class Slow(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            time.sleep(float(seconds))
            self.assign(out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0])

    @mx.operator.register("slow")
    class SlowProperties(mx.operator.CustomOpProp):
        def create_operator(self, context, shapes, dtypes):
            return Slow()

    waiting.EVERY = 1
    layer = gluon.nn.Dense(int(width), in_units=int(width), use_bias=False)
    layer.initialize()
    trainer = gluon.Trainer(layer.collect_params(), "sgd", kvstore="p3")
    watch = waiting.Watch(trainer, workers=2)
    for _ in range(4):
        with watch.forward(), autograd.record():
            loss = mx.nd.Custom(layer(mx.nd.ones((1, int(width)))), op_type="slow").sum()
        with watch.backward():
            loss.backward()
        with watch.update():
            trainer.step(2)
    mx.nd.waitall()
    print("share", watch.share(), flush=True)


@pytest.mark.all_only
@needs_root
@pytest.mark.parametrize(
    ("megabits", "width", "seconds", "waits"),
    # 4 MB each way at 20 Mbit/s take 3 s; a few bytes take nothing.
    [(20, 1000, 0, True), (0, 4, 3, False)],
    ids=["slow link", "slow layer"],
)
def test_what_is_known_to_be_waiting_is_shown_as_that(
    tmp_path: Path, megabits: float, width: int, seconds: float, waits: bool
) -> None:
    need("tc")
    script = tmp_path / "worker.py"
    script.write_text(f"{inspect.getsource(watch_steps)}\nimport sys\nwatch_steps(*sys.argv[1:])\n")
    worker = [sys.executable, str(script), str(EXAMPLES), str(width), str(seconds)]
    with Cluster(hosts=2, link=Link(send=megabits, receive=megabits)) as cluster:
        variables = {
            **os.environ,
            "PYTHONPATH": python_path(),
            "DMLC_NUM_WORKER": "2",
            "DMLC_NUM_SERVER": "1",
            "DMLC_PS_ROOT_URI": cluster.switch.address,
            "DMLC_PS_ROOT_PORT": "9091",
        }
        serve = [sys.executable, "-m", "kvstore_ext.server"]
        processes = [
            cluster.start(host, command, stdout=subprocess.PIPE, text=True, env={
                **variables, "DMLC_ROLE": role, "DMLC_NODE_HOST": host.address})
            for role, host, command in [
                ("scheduler", cluster.switch, serve),
                ("server", cluster.hosts[0], serve),
                *(("worker", host, worker) for host in cluster.hosts),
            ]
        ]
        shares = [float(process.communicate(timeout=LIMIT)[0].split()[-1])
                  for process in processes[2:]]
    assert all((share > 0.5) == waits for share in shares), shares
