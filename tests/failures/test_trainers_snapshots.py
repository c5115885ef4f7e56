"""What a Trainer's run has beside its parameters comes back, and its steps are counted as made."""
from __future__ import annotations

import gc
import pickle
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ContextManager

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import KVStoreError
from kvstore_ext.copies import packed, resume
from mxnet.contrib.amp.loss_scaler import LossScaler

from tests.support.processes import run_python

from .snapshot_runs import SHAPE, names


def dense(
    names: tuple[str, ...] = ("",), update_on_kvstore: bool = True, **how: Any
) -> tuple[mx.gluon.Trainer, Any, Any]:
    """A Trainer of layers beside each other, by which the gradient of each weight is 1; its store,
    and the layers."""
    layers = [mx.gluon.nn.Dense(1, in_units=1, use_bias=False, prefix=name) for name in names]
    network = mx.gluon.nn.Sequential(prefix="")
    network.add(*layers)
    network.initialize("zeros")
    store = mx.kv.create("p3")
    trainer = mx.gluon.Trainer(
        network.collect_params(), "sgd", how, store, update_on_kvstore=update_on_kvstore
    )
    return trainer, store, layers


def step_of(trainer: mx.gluon.Trainer, layers: Any) -> None:
    with mx.autograd.record():
        loss = sum(layer(mx.nd.ones((1, 1))) for layer in layers)
    loss.backward()
    trainer.step(1)


def test_a_scripts_schedule_stays_its_own(tmp_path: Path) -> None:
    for before in (None, 1):
        schedule = mx.lr_scheduler.FactorScheduler(1000, base_lr=0.5)
        trainer, store, layers = dense(learning_rate=0.5, lr_scheduler=schedule)
        assert store.restore(tmp_path) == before
        step_of(trainer, layers)
        store.snapshot(tmp_path, every=1)
        schedule.base_lr = 0.25
        step_of(trainer, layers)
        assert layers[0].weight.data().asscalar() == (-0.75 if before is None else -1.25)
        store.close()


def test_a_script_keeps_by_how_much_it_scales_gradients() -> None:
    """A run may go on with other batches, or another number of workers."""
    optimizer = mx.optimizer.SGD(rescale_grad=1 / 4, learning_rate=0.5)
    resume(optimizer, packed(mx.optimizer.SGD(rescale_grad=1 / 8, learning_rate=0.1)))
    assert (optimizer.rescale_grad, optimizer.lr) == (1 / 4, 0.1)


def test_a_modules_states_are_of_as_many_devices(tmp_path: Path) -> None:
    """It numbers them by parameter and device."""
    layer = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="layer")
    symbol = mx.sym.LinearRegressionOutput(layer, name="out")
    for devices, restores in ((2, False), (2, True), (1, True)):
        module = mx.mod.Module(
            symbol,
            label_names=["out_label"],
            context=[mx.cpu(number) for number in range(devices)],
        )
        data = mx.io.NDArrayIter(np.ones((4, 3)), np.ones((4, 1)), 4,
                                 label_name="out_label")
        module.bind(data.provide_data, data.provide_label)
        module.init_params()
        store = mx.kv.create("qsgd")
        module.init_optimizer(store, "sgd", {"momentum": 0.9})
        refused = pytest.raises(KVStoreError, match=r"devices.*2.*1")
        with refused if devices == 1 else nullcontext():
            if restores:
                assert store.restore(tmp_path) == 1
        if not restores:
            module.forward_backward(next(data))
            module.update()
            store.snapshot(tmp_path, every=1)
        store.close()


def test_a_module_may_take_the_place_of_another(tmp_path: Path) -> None:
    def bound(rows: int, **how: Any) -> mx.mod.Module:
        data = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="output")
        module = mx.mod.Module(mx.sym.MakeLoss(data), label_names=None)
        module.bind([("data", (rows, 2))], **how)
        return module

    def step(module: mx.mod.Module, rows: int) -> None:
        module.forward_backward(mx.io.DataBatch([mx.nd.ones((rows, 2))]))
        module.update()

    store = mx.kv.create("p3")
    module = bound(4)
    module.init_params(mx.init.One())
    module.init_optimizer(store, "sgd", {"learning_rate": 0.5})
    step(module, 4)
    for rows in (3, 2):
        module = bound(rows, shared_module=module)
        gc.collect()
        step(module, rows)
    assert store.snapshot(tmp_path, every=1)
    trained = module.get_params()[0]["output_weight"].asnumpy()
    store.close()

    store = mx.kv.create("p3")
    first = bound(4)
    first.init_params(mx.init.Zero())
    first.init_optimizer(store, "sgd", {"learning_rate": 0.5})
    module = bound(2, shared_module=first)
    del first
    gc.collect()
    assert store.restore(tmp_path) == 3
    assert (module.get_params()[0]["output_weight"].asnumpy() == trained).all()
    store.close()


@pytest.mark.parametrize("name", ["adam", "lamb"])
def test_a_snapshot_leaves_the_scripts_optimizer_as_it_is(tmp_path: Path, name: str) -> None:
    def opened() -> tuple[Any, mx.optimizer.Optimizer]:
        store, optimizer = mx.kv.create("p3"), mx.optimizer.create(name)
        store.set_optimizer(optimizer)
        store.init("weight", mx.nd.ones(SHAPE))
        return store, optimizer

    store, optimizer = opened()
    for _ in range(3):
        store.push("weight", mx.nd.ones(SHAPE))
    mx.nd.waitall()
    before = packed(optimizer)
    assert store.snapshot(tmp_path, every=1)
    states = tmp_path / "states"
    store.save_optimizer_states(str(states), dump_optimizer=True)
    assert packed(optimizer) == before
    store.close()
    (_, saved), (store, restored) = pickle.loads(states.read_bytes()), opened()
    assert store.restore(tmp_path) == 3
    for other in (saved, restored):
        assert (other.num_update, other._index_update_count) == (3, {"weight": 3})
    store.close()


def test_steps_go_on_where_what_was_trained_is_frozen(tmp_path: Path) -> None:
    trainer, store, (one, other) = dense(("one_", "other_"), learning_rate=1)
    other.weight.grad_req = "null"
    for step in range(1, 4):
        step_of(trainer, [one])
        assert store.steps == step
    one.weight.grad_req, other.weight.grad_req = "null", "write"
    for step in range(4, 7):
        step_of(trainer, [other])
        assert store.steps == step
        assert store.snapshot(tmp_path, every=2) == (step % 2 == 0)
    store.close()  # which waits for the last one
    assert names(tmp_path) == ["snapshot-000000-step-4", "snapshot-000001-step-6"]


def test_a_step_begins_with_a_key_that_the_last_one_had_or_when_a_script_says_so() -> None:
    store = mx.kv.create("p3")
    for key in range(3):
        store.init(key, mx.nd.zeros(SHAPE))
    made = []
    for keys in ([0, 1], [1], [1, 2], [0]):
        store.push(keys, [mx.nd.ones(SHAPE)] * len(keys))
        made.append(store.steps)
    assert made == [1, 2, 3, 3]
    store.begin_step()
    store.push(1, mx.nd.ones(SHAPE))
    assert store.steps == 4
    store.close()


INCLUDED = """
import sys

import kvstore_ext
import mxnet as mx

directory, steps, goes_on_from, weights = sys.argv[1], *map(int, sys.argv[2:4]), sys.argv[4]
runs = []
for name in ("one_", "other_"):
    layer = mx.gluon.nn.Dense(1, in_units=1, use_bias=False, prefix=name)
    layer.initialize("zeros")
    store = mx.kv.create("p3")
    trainer = mx.gluon.Trainer(layer.collect_params(), "sgd", {"learning_rate": 1}, store)
    runs.append((layer, store, trainer))

def step(layer, store, trainer):
    with mx.autograd.record():
        loss = layer(mx.nd.ones((1, 1)))
    loss.backward()
    trainer.step(1)

(one, store, _), (other, another, _) = runs
store.include_run_of(another)
assert store.restore(directory) == (goes_on_from or None)
for _ in range(steps):
    step(*runs[0])
store.snapshot(directory, every=2)
step(*runs[1])
found = [float(layer.weight.data().asnumpy().item()) for layer in (one, other)]
assert found == [float(weight) for weight in weights.split()], found
for each in (store, another):
    each.close()
"""


def test_a_run_may_include_one_that_has_not_begun(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(INCLUDED)
    for steps, goes_on_from, weights in ((2, 0, "-2 -1"), (1, 2, "-3 -1")):
        arguments = (script, tmp_path / "snapshots", steps, goes_on_from, weights)
        run_python(*arguments, fork=True)


# The second job restores before the other network has its Trainer.
INCOMPLETE = """
import sys

import kvstore_ext
import mxnet as mx

store, another = mx.kv.create("p3"), mx.kv.create("p3")

def trained(prefix, kvstore, **how):
    layer = mx.gluon.nn.Dense(1, in_units=1, use_bias=False, prefix=prefix)
    layer.initialize("zeros")
    trainer = mx.gluon.Trainer(layer.collect_params(), "sgd", {}, kvstore, **how)
    with mx.autograd.record():
        loss = layer(mx.nd.ones((1, 1)))
    loss.backward()
    trainer.step(1)
    return trainer

trainer = trained("one_", store)
store.include_run_of(another)
if sys.argv[2] == "begins":
    other = trained("other_", another, update_on_kvstore=False)
    store.snapshot(sys.argv[1], every=1)
else:
    try:
        store.restore(sys.argv[1])
    except kvstore_ext.KVStoreError as error:
        assert "it has the part 'Trainer' of store 1; this run has not" in str(error), error
    else:
        raise SystemExit("nothing was refused")
for each in (store, another):
    each.close()
"""


def test_a_run_lacks_no_part_of_one_that_it_includes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(INCOMPLETE)
    for what in ("begins", "goes on"):
        run_python(script, tmp_path / "snapshots", what, fork=True)


def test_two_runs_do_not_include_each_other() -> None:
    one, other, third = (mx.kv.create("p3") for _ in range(3))
    third.include_run_of(one)
    other.include_run_of(third)
    for store, included in ((one, one), (one, third), (one, other)):
        with pytest.raises(KVStoreError, match=r"of which the run of store \d+ is a part"):
            store.include_run_of(included)
    for each in (one, other, third):
        each.close()


def test_a_snapshot_before_shapes_are_known_is_refused(tmp_path: Path) -> None:
    trainer, store, layers = dense(learning_rate=1)
    network = mx.gluon.nn.Dense(1)
    network.initialize()
    another = mx.kv.create("p3")
    mx.gluon.Trainer(network.collect_params(), "sgd", kvstore=another)
    store.include_run_of(another)
    step_of(trainer, layers)
    with pytest.raises(KVStoreError, match=r"_weight, whose shape is not known yet: run"):
        store.snapshot(tmp_path, every=1)
    for each in (store, another):
        each.close()


def test_a_network_may_not_even_know_how_many_dimensions_it_has(tmp_path: Path) -> None:
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="layer")
    for before in (None, 1):
        network = mx.gluon.SymbolBlock(symbol, mx.sym.var("data"))
        network.initialize("zeros")
        assert network.collect_params()["layer_weight"].shape is None
        store = mx.kv.create("p3")
        trainer = mx.gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 1}, store)
        assert store.restore(tmp_path) == before
        with mx.autograd.record():
            loss = network(mx.nd.ones((1, 2)))
        loss.backward()
        trainer.step(1)
        store.snapshot(tmp_path, every=1)
        bias = network.collect_params()["layer_bias"].data().asnumpy()
        np.testing.assert_array_equal(bias, np.full(3, -1 if before is None else -2))
        store.close()


@pytest.mark.parametrize("on_servers", [False, True])
def test_the_scale_of_mixed_precision_comes_back(tmp_path: Path, on_servers: bool) -> None:
    for before in (None, 1):
        trainer, store, layers = dense(update_on_kvstore=on_servers)
        trainer._amp_loss_scaler = LossScaler()
        assert store.restore(tmp_path) == before
        if before is None:
            with warned(on_servers):
                step_of(trainer, layers)
            trainer._amp_loss_scaler._loss_scale = 128
            trainer._amp_loss_scaler._unskipped = 7
            store.snapshot(tmp_path, every=1)
        assert trainer._amp_loss_scaler.loss_scale == 128
        assert trainer._amp_loss_scaler._unskipped == 7
        store.close()


def warned(expected: bool) -> ContextManager[Any]:
    return pytest.warns(UserWarning, match="non_finite 'skip'") if expected else nullcontext()
