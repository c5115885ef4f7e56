"""kvstore-launch with kvstore-ext --join: scripts that know nothing of uneven batches have them."""
from __future__ import annotations

import shlex
from pathlib import Path

from tests.support.fork_desk import ForkDesk

from .jobs import LAUNCH, Job

TRAIN = """

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


ONE_AFTER_THE_OTHER = """
import gc

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon


def train(batches):
    network = gluon.nn.Dense(1, use_bias=False, in_units=3)
    network.initialize(mx.init.One())
    rate = {"learning_rate": 1.0}
    trainer = gluon.Trainer(network.collect_params(), "sgd", rate, kvstore="p3")
    for step, batch in enumerate(batches):
        if step == 2 and trainer._kvstore.rank == 0:
            gc.collect()  # the store of the network before
        with autograd.record():
            loss = network(batch).sum()
        loss.backward()
        trainer.step(1)
    mx.nd.waitall()
    print("training ends at", network.weight.data().asnumpy()[0, 0])


def loader(batches):
    return gluon.data.DataLoader(gluon.data.ArrayDataset(np.ones((batches, 3), np.float32)), 1)


def own(batches):
    return (mx.nd.ones((1, 3)) for _ in range(batches))


gc.disable()
for batches in [loader(4), loader(4), own(4), own(4)]:  # a DataLoader collects when it is made
    train(batches)
"""


BROKEN_OFF = """
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

network = gluon.nn.Dense(1, use_bias=False, in_units=3)
network.initialize(mx.init.One())
store = mx.kv.create("p3")
rate = {"learning_rate": 1.0}
trainer = gluon.Trainer(network.collect_params(), "sgd", rate, kvstore=store)
batches = mx.io.NDArrayIter(np.ones((2 + store.rank, 3), np.float32), batch_size=1)
tests = mx.io.NDArrayIter(np.ones((3, 3), np.float32), batch_size=1)


def one_by_one(iterator):
    while True:
        try:
            yield next(iter(iterator))
        except StopIteration:
            return


for epoch in range(3):
    batches.reset()
    for batch in one_by_one(batches) if epoch == 1 else batches:
        with autograd.record():
            loss = network(batch.data[0]).sum()
        loss.backward()
        trainer.step(1)
    if store.rank == 0:
        tests.reset()
        for number, _ in enumerate(tests):
            if epoch == 0 and number == 1:
                break
    mx.nd.waitall()
    print("epoch ends at", network.weight.data().asnumpy()[0, 0])
"""


def trained(job: Job, directory: Path, text: str, workers: int) -> list[list[str]]:
    """What each worker has said of a job that runs this script with --join."""
    script = directory / "train.py"
    script.write_text(text)
    environment = {"PYTHONPATH": str(LAUNCH.parents[1])}
    with ForkDesk(directory / "desk").serve() as desk:
        runner = [*desk.command, "-m", "kvstore_run", "--join", str(script)]
        serve = shlex.join([*desk.command, "-m", "kvstore_ext.server"])
        jobs = ["-n", str(workers), "-s", "1", "--server-command", serve]
        assert job.run(*jobs, *runner, environment=environment) == 0, job.errors
    marks = [f"[worker {rank}]" for rank in range(workers)]
    return [[line.partition("] ")[2] for line in job.lines if mark in line] for mark in marks]


def test_an_unmodified_script_with_uneven_batches_trains(job: Job, tmp_path: Path) -> None:
    ends = [f"epoch ends at {1.0 - 9 * epoch}" for epoch in (1, 2)]  # 2 + 3 + 4 batches
    for said in trained(job, tmp_path, TRAIN, workers=3):
        own = [line for line in said if line.startswith(("with", "epoch"))]
        expected = ["with a loader", *ends, "with a module", *ends, "with batches of its own"]
        assert own[: len(expected)] == expected, said


def test_a_store_that_is_collected_late_joins_nothing(job: Job, tmp_path: Path) -> None:
    """In the midst of another network's epoch, and on one worker alone."""
    for said in trained(job, tmp_path, ONE_AFTER_THE_OTHER, workers=2):
        ends = [line for line in said if line.startswith("training ends")]
        assert ends == ["training ends at -7.0"] * 4, said


def test_a_test_that_was_broken_off_does_not_make_the_next_one_training(
    job: Job, tmp_path: Path
) -> None:
    for said in trained(job, tmp_path, BROKEN_OFF, workers=2):
        ends = [line for line in said if line.startswith("epoch ends")]
        assert ends == [f"epoch ends at {1.0 - 5 * epoch}" for epoch in (1, 2, 3)], said


def test_a_snapshot_between_an_epochs_steps_is_refused(job: Job, tmp_path: Path) -> None:
    """Others may have no more batches; behind the epoch all have made the same steps again."""
    script = f"""
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

network = gluon.nn.Dense(1, use_bias=False, in_units=3)
network.initialize(mx.init.One())
store = mx.kv.create("p3")
trainer = gluon.Trainer(network.collect_params(), "sgd", kvstore=store)
data = gluon.data.ArrayDataset(np.ones((2 + store.rank, 3), np.float32))
for epoch in range(2):
    for batch in gluon.data.DataLoader(data, 1):
        with autograd.record():
            loss = network(batch).sum()
        loss.backward()
        trainer.step(1)
        try:
            store.snapshot({str(tmp_path)!r}, every=1)
        except mx.MXNetError as error:
            print(error)
    print("taken:", store.snapshot({str(tmp_path / "snapshots")!r}, every=1))
store.close()
"""
    for rank, said in enumerate(trained(job, tmp_path, script, 2)):
        refused = [line for line in said if "call it after each epoch, or have the script" in line]
        assert len(refused) == 2 * (2 + rank)
        assert said.count("taken: True") == 2
