"""What a script does with MXNet's own stores, and more than they can."""

from __future__ import annotations

import warnings
from typing import Any
from unittest import mock

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon
from mxnet.gluon.contrib import estimator
from mxnet.kvstore import KVStore, KVStoreBase

from tests.support.checks.optimizers import as_in_one_process
from tests.support.checks.values import DEVICES, assert_equal, ours, pulled, total

# SGLD draws random numbers: see training/test_drop_in.py.
OPTIMIZERS = sorted(set(mx.optimizer.Optimizer.opt_registry) - {"sgld"})
OPTIONS: dict[str, dict[str, Any]] = {
    "sgd": {"momentum": 0.9, "wd": 0.01},
    "lars": {"momentum": 0.9, "eta": 0.1},
    "lbsgd": {"warmup_strategy": "lars", "momentum": 0.9},
    "adam": {"wd": 0.01},
}


def every_optimizer_trains_as_in_one_process(_: KVStore) -> None:
    for name in OPTIMIZERS:

        def make(name: str = name) -> mx.optimizer.Optimizer:
            return mx.optimizer.create(name, learning_rate=0.1, **OPTIONS.get(name, {}))

        try:
            as_in_one_process(make, ["one", "two"] * 3)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


class Line:
    """One parameter, whose gradient a test chooses, and a trainer with a store of its own."""

    def __init__(self, **options: Any) -> None:
        self.weight = gluon.Parameter("weight", shape=(30,), init="zeros")
        self.weight.initialize(ctx=DEVICES)
        self.store = mx.kv.create("p3")
        options = {"learning_rate": 1.0, **options}
        self.trainer = gluon.Trainer([self.weight], "sgd", options, kvstore=self.store)

    def step(self, batch_size: int = 1) -> None:
        """A step with a gradient of 1 on every device of every worker."""
        with autograd.record():
            losses = [self.weight.data(device).sum() for device in DEVICES]
        autograd.backward(losses)
        self.trainer.step(batch_size)

    @property
    def value(self) -> float:
        found = self.weight.data().asnumpy()
        assert (found == found[0]).all()
        return float(found[0])

    @property
    def total(self) -> int:
        """The sum of all gradients of a step."""
        return self.store.num_workers * len(DEVICES)


def a_new_learning_rate_holds_from_the_next_step_on(_: KVStore) -> None:
    line = Line()
    rates = [1.0, 0.5, 0.25, 1.0]
    for rate in rates:
        line.trainer.set_learning_rate(rate)
        line.step()  # nobody waits for the step before
    assert line.value == -sum(rates) * line.total
    line.store.close()


def another_batch_size_rescales_gradients(_: KVStore) -> None:
    line = Line()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch_size in (4, 2, 8):
            line.step(batch_size)
    assert line.value == -line.total * (1 / 4 + 1 / 2 + 1 / 8)
    line.store.close()


def other_multipliers_and_decay_hold_from_the_next_step_on(_: KVStore) -> None:
    line = Line()
    line.step()
    line.weight.lr_mult = 0.5
    line.step()
    line.trainer.optimizer.wd = 0.5
    expected = -1.5 * line.total
    line.step()
    expected -= 0.5 * (line.total + 0.5 * expected)
    line.weight.wd_mult = 0.0
    line.step()
    expected -= 0.5 * line.total
    assert line.value == expected
    line.store.close()


def another_schedule_holds_from_the_next_step_on(_: KVStore) -> None:
    line = Line()
    line.step()
    line.trainer.optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=4.0)
    line.step()
    line.step()
    assert line.trainer.learning_rate == 1.0  # as of the third step
    assert line.value == -line.total * (1 + 2 + 1)
    line.store.close()


def sparse_keys_hear_of_a_new_learning_rate(_: KVStore) -> None:
    store = mx.kv.create("p3")
    optimizer = mx.optimizer.SGD(learning_rate=1.0)
    store.set_optimizer(optimizer)
    store.init("rows", mx.nd.zeros((4, 2)).tostype("row_sparse"))
    for rate in (1.0, 0.5):
        optimizer.lr = rate
        store.push("rows", mx.nd.ones((4, 2)).tostype("row_sparse"))
    out = mx.nd.sparse.zeros("row_sparse", (4, 2))
    store.row_sparse_pull("rows", out=out, row_ids=mx.nd.arange(4, dtype="int64"))
    assert_equal(out, np.full((4, 2), -1.5 * store.num_workers))
    store.close()


def stores_of_a_process_have_keys_and_optimizers_of_their_own(_: KVStore) -> None:
    stores = [mx.kv.create("p3") for _ in range(3)]
    for number, store in enumerate(stores):
        if number < 2:
            store.set_optimizer(mx.optimizer.SGD(learning_rate=number + 1))
        store.init([0, "key"], [mx.nd.zeros((40,))] * 2)
        store.init(7, mx.nd.zeros((4, 2)).tostype("row_sparse"))
        store.push(7, mx.nd.ones((4, 2)).tostype("row_sparse"))
        store.push([0, "key"], [ours(store, (40,))] * 2)
    for number, store in enumerate(stores):
        factor = -(number + 1) if number < 2 else 1
        for key in (0, "key"):
            assert_equal(pulled(store, key, (40,)), factor * total(store, (40,)))
        out = mx.nd.sparse.zeros("row_sparse", (4, 2))
        store.row_sparse_pull(7, out=out, row_ids=mx.nd.arange(4, dtype="int64"))
        assert_equal(out, np.full((4, 2), factor * store.num_workers))
        store.close()


def names_of_stores_are_enough_for_a_trainer(_: KVStore) -> None:
    as_by_replace = {"device": kvstore_ext.P3Worker}  # as --replace device=p3 does
    with mock.patch.dict(KVStoreBase.kv_registry, as_by_replace):
        for name in ("p3", "dist_sync_p3", "device"):
            weight = gluon.Parameter("weight", shape=(30,), init="zeros")
            weight.initialize()
            trainer = gluon.Trainer([weight], "sgd", {"learning_rate": 1.0}, kvstore=name)
            with autograd.record():
                loss = weight.data().sum()
            loss.backward()
            trainer.step(1)
            assert isinstance(trainer._kvstore, kvstore_ext.P3Worker)
            assert_equal(weight.data(), np.full((30,), -trainer._kvstore.num_workers))
            trainer._kvstore.close()


def an_estimator_trains(_: KVStore) -> None:
    mx.random.seed(5)
    store = mx.kv.create("p3")
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize(mx.init.Uniform(1))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store)
    fitted = estimator.Estimator(
        net, gluon.loss.L2Loss(), trainer=trainer, train_metrics=mx.metric.MSE(), context=mx.cpu()
    )
    fitted.logger.setLevel("ERROR")
    inputs = np.random.RandomState(store.rank).rand(40, 3).astype(np.float32)
    targets = (inputs @ [[1, 2], [3, 4], [5, 6]]).astype(np.float32)
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(inputs, targets), batch_size=10)
    before = ((net(mx.nd.array(inputs)).asnumpy() - targets) ** 2).mean()
    fitted.fit(data, epochs=30)
    after = ((net(mx.nd.array(inputs)).asnumpy() - targets) ** 2).mean()
    assert after < before / 10
    weight = net.weight.data()
    same = mx.nd.zeros(weight.shape)
    store.broadcast("of rank 0", weight, out=same)
    assert_equal(weight, same.asnumpy())
    store.close()


def the_store_says_what_it_is(store: KVStore) -> None:
    assert store.is_capable("optimizer")
    assert store.type == "dist_sync_p3"


def the_rest_of_the_interface_is_there(store: KVStore) -> None:
    assert store.get_num_dead_node(6, timeout=600) == 0
    store._send_command_to_servers(77, "nobody knows this")
    store._barrier()


def a_pull_of_sparse_keys_as_well_is_refused(store: KVStore) -> None:
    store.init("for the rest", mx.nd.zeros((2,)))
    with pytest.raises(mx.MXNetError, match="ignore_sparse"):
        store.pull("for the rest", out=mx.nd.zeros((2,)), ignore_sparse=False)


CHECKS = {
    check.__name__: check
    for check in (
        every_optimizer_trains_as_in_one_process,
        a_new_learning_rate_holds_from_the_next_step_on,
        another_batch_size_rescales_gradients,
        other_multipliers_and_decay_hold_from_the_next_step_on,
        another_schedule_holds_from_the_next_step_on,
        sparse_keys_hear_of_a_new_learning_rate,
        stores_of_a_process_have_keys_and_optimizers_of_their_own,
        names_of_stores_are_enough_for_a_trainer,
        an_estimator_trains,
        the_store_says_what_it_is,
        the_rest_of_the_interface_is_there,
        a_pull_of_sparse_keys_as_well_is_refused,
    )
}
