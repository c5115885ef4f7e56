"""kvstore-launch with kvstore-ext --join: scripts that know nothing of uneven batches have them."""
from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.support.fork_desk import ForkDesk

from .jobs import LAUNCH, Job

TRAIN = """
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

def with_trainer(store, make_batches):
    network = gluon.nn.Dense(1, use_bias=False, in_units=3)
    network.initialize(mx.init.One())
    rate = {"learning_rate": 1.0}
    trainer = gluon.Trainer(network.collect_params(), "sgd", rate, kvstore=store)
    for _ in range(2):
        for batch in make_batches(2 + store.rank):
            with autograd.record():
                loss = network(batch).sum()
            loss.backward()
            trainer.step(1)
        for _ in gluon.data.DataLoader(gluon.data.ArrayDataset(np.ones(store.rank + 1)), 1):
            pass  # a test, which takes no part in training
        mx.nd.waitall()
        print("epoch ends at", network.weight.data().asnumpy()[0, 0])


def with_module(store):
    output = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, no_bias=True, name="dense")
    factor = mx.sym.reshape(mx.sym.var("softmax_label"), (-1, 1))
    module = mx.mod.Module(mx.sym.MakeLoss(mx.sym.broadcast_mul(output, factor)))
    rate = {"learning_rate": 1.0, "rescale_grad": 1.0}
    module.fit(
        mx.io.NDArrayIter(np.ones((2 + store.rank, 3)), np.ones(2 + store.rank), 1), kvstore=store,
        optimizer_params=rate, initializer=mx.init.One(), num_epoch=2,
        eval_metric=mx.metric.Loss(),
        epoch_end_callback=lambda epoch, symbol, arguments, auxiliary: print(
            "epoch ends at", arguments["dense_weight"].asnumpy()[0, 0]),
    )


def loader(batches):
    return gluon.data.DataLoader(gluon.data.ArrayDataset(np.ones((batches, 3), np.float32)), 1)


def own(batches):
    return (mx.nd.ones((1, 3)) for _ in range(batches))


stores = [mx.kv.create("p3") for _ in range(3)]
print("with a loader")
with_trainer(stores[0], loader)
print("with a module")
with_module(stores[1])
print("with batches of its own")
with_trainer(stores[2], own)
"""


def test_an_unmodified_script_with_uneven_batches_trains(job: Job, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    runner = [sys.executable, "-m", "kvstore_run", "--join", str(script)]
    environment = {"PYTHONPATH": str(LAUNCH.parents[1])}
    with ForkDesk(tmp_path / "desk").serve() as desk:  # the workers' runner is what is tested
        serve = shlex.join([*desk.command, "-m", "kvstore_ext.server"])
        jobs = ["-n", "3", "-s", "1", "--server-command", serve]
        assert job.run(*jobs, *runner, environment=environment) == 0, job.errors
    ends = [f"epoch ends at {1.0 - 9 * epoch}" for epoch in (1, 2)]  # 2 + 3 + 4 batches
    for rank in range(3):
        said = [line.partition("] ")[2] for line in job.lines if f"[worker {rank}]" in line]
        own = [line for line in said if line.startswith(("with", "epoch"))]
        expected = ["with a loader", *ends, "with a module", *ends, "with batches of its own"]
        assert own[: len(expected)] == expected, said
