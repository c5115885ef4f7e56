"""Workers with different numbers of batches: what comes of those who still push, all have again."""
from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence
from unittest import mock

import mxnet as mx
import numpy as np
from kvstore_ext.compression import TYPES
from kvstore_ext.protocol import state_pieces
from mxnet import autograd, gluon
from mxnet.kvstore import KVStore

from tests.support.checks.sparse import SHAPE, all_rows, first_value, gradient, momentum
from tests.support.checks.values import DEVICES, assert_equal, contribution

LENGTH = 60  # elements: several slices
EPOCHS = 2
MAKE: dict[str, Callable[[], mx.optimizer.Optimizer]] = {
    "sgd": lambda: mx.optimizer.SGD(learning_rate=0.5, momentum=0.5),
    "adam": lambda: mx.optimizer.Adam(learning_rate=0.5),
    "nadam": lambda: mx.optimizer.Nadam(learning_rate=0.5),  # has a number that it multiplies up
    "lamb": lambda: mx.optimizer.LAMB(learning_rate=0.5),
}


def steps_of(rank: int) -> int:
    """How many a worker has in an epoch."""
    return 2 + rank


def still_pushing(store: KVStore, step: int) -> list[int]:
    """The ranks that have this step of an epoch."""
    return [rank for rank in range(store.num_workers) if step < steps_of(rank)]


def pushed(rank: int, number: int) -> np.ndarray:
    """A worker's gradient in a step, which has the same number on all workers."""
    return contribution(rank, (LENGTH,), number)


def totals(store: KVStore, mean: bool = False) -> Iterator[tuple[int, np.ndarray]]:
    """The numbers of all steps, and the sums that count in them."""
    for epoch in range(EPOCHS):
        for step in range(steps_of(store.num_workers - 1)):
            number = 10 * epoch + step
            ranks = still_pushing(store, step)
            total = sum(pushed(rank, number) for rank in ranks)
            yield number, total * (store.num_workers / len(ranks) if mean else 1)


def alone(store: KVStore, name: str, *more: np.ndarray, **how: Any) -> np.ndarray:
    """What one process makes of these sums, and of more."""
    updater, value = mx.optimizer.get_updater(MAKE[name]()), mx.nd.ones((LENGTH,))
    for total in [*(total for _, total in totals(store, **how)), *more]:
        updater(0, mx.nd.array(total), value)
    return value.asnumpy()


def check_sums(store: KVStore, mean: bool = False) -> None:
    out, expected = mx.nd.zeros((LENGTH,)), dict(totals(store, mean))
    store.init("sums", out)
    for epoch in range(EPOCHS):
        for step in range(steps_of(store.rank)):
            number = 10 * epoch + step
            store.pushpull("sums", mx.nd.array(pushed(store.rank, number)), out=out)
            np.testing.assert_allclose(out.asnumpy(), expected[number], 1e-6)
        last = store.join(mean)
        assert last == store.num_workers - 1
        store.pull("sums", out=out)
        np.testing.assert_allclose(out.asnumpy(), expected[number // 10 * 10 + 1 + last], 1e-6)
        own = mx.nd.full((3,), store.rank)
        store.broadcast_from(last, "own", own)
        assert_equal(own, last)


def sums_are_of_those_who_still_push(_: KVStore) -> None:
    store = mx.kv.create("p3")
    check_sums(store)
    store.close()


def a_mean_is_of_those_who_still_push(_: KVStore) -> None:
    store = mx.kv.create("p3")
    check_sums(store, mean=True)
    store.close()


class Line:
    """A parameter that a Trainer updates, and whose gradient is what a check wants."""

    def __init__(
        self, name: str, store: Any, devices: Sequence[mx.Context] = DEVICES, **how: Any
    ) -> None:
        self.weight = gluon.Parameter("weight", shape=(LENGTH,), init="ones")
        self.weight.initialize(ctx=list(devices))
        self.store = store
        self.trainer = gluon.Trainer([self.weight], MAKE[name](), kvstore=store, **how)

    def epochs(self, mean: bool = False) -> None:
        for epoch in range(EPOCHS):
            with self.store.joined(mean):
                for step in range(steps_of(self.store.rank)):
                    self.step(pushed(self.store.rank, 10 * epoch + step))

    def step(self, wanted: np.ndarray) -> None:
        with autograd.record():
            losses = [
                (self.weight.data(device) * mx.nd.array(part, device)).sum()
                for device, part in zip(self.weight.list_ctx(), (wanted, 0 * wanted))
            ]
        autograd.backward(losses)
        self.trainer.step(1)

    def check(self, expected: np.ndarray) -> None:
        for value in self.weight.list_data():
            np.testing.assert_allclose(value.asnumpy(), expected, 1e-4, 1e-5)


def check_trainer(name: str, mean: bool = False, **how: Any) -> None:
    line = Line(name, mx.kv.create("p3"), **how)
    line.epochs(mean)
    line.check(alone(line.store, name, mean=mean))
    line.store.close()


def a_trainer_has_what_the_servers_have_updated(_: KVStore) -> None:
    check_trainer("sgd")
    check_trainer("adam", mean=True)


def a_trainer_has_what_every_worker_has_updated(_: KVStore) -> None:
    check_trainer("adam", update_on_kvstore=False)
    # It multiplies its number up on each device.
    check_trainer("nadam", devices=DEVICES[:1], update_on_kvstore=False, mean=True)


def counts_are_taken_over_where_workers_have_devices_of_other_numbers(_: KVStore) -> None:
    """Adam's steps depend on how many there were."""
    store = mx.kv.create("p3")
    line = Line("adam", store, [mx.cpu(store.rank)], update_on_kvstore=False)
    line.epochs()
    line.step(pushed(store.rank, 5))  # by whoever has missed rounds, too
    last = sum(pushed(rank, 5) for rank in range(store.num_workers))
    line.check(alone(store, "adam", last))
    store.close()


def what_is_handed_over_travels_in_pieces(_: KVStore) -> None:
    with mock.patch.object(state_pieces, "PIECE", 100):
        a_trainer_has_what_every_worker_has_updated(_)


def a_trainer_has_what_the_store_has_updated_here(_: KVStore) -> None:
    check_trainer("lamb")


def schedules_go_on_where_the_others_are(_: KVStore) -> None:
    store = mx.kv.create("p3")
    line = Line("sgd", store)
    line.trainer.optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)
    line.epochs()
    line.step(pushed(0, 0))
    steps = len(list(totals(store))) + 1
    assert line.trainer.learning_rate == 0.5 ** (steps - 1)
    store.close()


class CountingScaler:
    """As AMP's, which counts the steps since it has found an overflow."""

    def __init__(self) -> None:
        self.loss_scale, self.unskipped = 1.0, 0

    def has_overflow(self, _: Any) -> bool:
        self.unskipped += 1
        return False


def amps_loss_scale_is_that_of_who_has_missed_nothing(_: KVStore) -> None:
    for on_servers in (True, False):
        line = Line("sgd", mx.kv.create("p3"), update_on_kvstore=on_servers)
        line.trainer._amp_loss_scaler = CountingScaler()
        line.epochs()
        assert line.trainer._amp_loss_scaler.unskipped == len(list(totals(line.store)))
        line.store.close()


def check_module(on_servers: bool) -> None:
    with mock.patch.dict(os.environ, {"MXNET_UPDATE_ON_KVSTORE": "01"[on_servers]}):
        train_module(mx.kv.create("p3"))


def train_module(store: KVStore) -> None:
    weight = mx.sym.var("weight", shape=(1, LENGTH))
    symbol = mx.sym.MakeLoss(mx.sym.sum(mx.sym.broadcast_mul(mx.sym.var("data"), weight)))
    module = mx.mod.Module(symbol, label_names=None)
    module.bind([("data", (1, LENGTH))])
    module.init_params(mx.init.One())
    module.init_optimizer(store, "adam", {"learning_rate": 0.5, "rescale_grad": 1.0})
    for epoch in range(EPOCHS):
        with store.joined():
            for step in range(steps_of(store.rank)):
                data = mx.nd.array(pushed(store.rank, 10 * epoch + step).reshape(1, -1))
                module.forward_backward(mx.io.DataBatch([data]))
                module.update()
            module.get_params()  # after which it need not look at the devices again
    found = module.get_params()[0]["weight"].asnumpy()[0]
    np.testing.assert_allclose(found, alone(store, "adam"), 1e-4, 1e-5)
    store.close()


def a_module_has_what_the_servers_have_updated(_: KVStore) -> None:
    check_module(on_servers=True)


def a_module_has_what_every_worker_has_updated(_: KVStore) -> None:
    check_module(on_servers=False)


# With which each sends a gradient of ones as it is.
EXACT: dict[str, dict[str, Any]] = {
    "dgc": {"ratio": 1.0},
    "qsgd": {"norm": "max"},
    "2bit": {"threshold": 1.0},
    "signsgd": {"scale": 1.0},
}


def a_join_counts_on_from_states_that_rank_0_alone_has_loaded(_: KVStore) -> None:
    store = mx.kv.create("p3")
    halves = mx.lr_scheduler.FactorScheduler(step=1, factor=0.5, base_lr=1)
    optimizer = mx.optimizer.SGD(learning_rate=1, lr_scheduler=halves)
    store.set_optimizer(optimizer)
    value = mx.nd.zeros((LENGTH,))
    store.broadcast(0, value, out=value)

    def train(steps: int) -> None:
        for _ in range(steps):
            store.pushpull(0, mx.nd.ones((LENGTH,)), out=value)
        value.wait_to_read()

    train(4)
    store.barrier()
    if store.rank == 0:
        with tempfile.TemporaryDirectory() as directory:
            store.save_optimizer_states(f"{directory}/states")
            store.load_optimizer_states(f"{directory}/states")
    store.barrier()
    with store.joined():
        train(1 if store.rank == 0 else 2)
    train(1)
    assert optimizer.num_update == 4 + min(store.num_workers, 2) + 1
    store.close()


def numpys_numbers_are_counts(_: KVStore) -> None:
    for on_workers in (False, True):
        store = mx.kv.create("p3")
        if on_workers:
            store.set_gradient_compression({"type": "fp16"})
        optimizer = mx.optimizer.Adam(begin_num_update=np.int64(3))
        store.set_optimizer(optimizer)
        value = mx.nd.zeros((LENGTH,))
        store.broadcast(0, value, out=value)
        with store.joined():
            for _ in range(steps_of(store.rank)):
                store.pushpull(0, mx.nd.ones((LENGTH,)), out=value)
        with tempfile.TemporaryDirectory() as directory:
            store.save_optimizer_states(f"{directory}/states")
            store.load_optimizer_states(f"{directory}/states")
        assert optimizer.num_update == 3 + steps_of(store.num_workers - 1)
        store.close()


def who_has_not_pushed_yet_gets_what_others_have_trained(_: KVStore) -> None:
    for last in (0, 1):  # to have batches
        store = mx.kv.create("p3")
        store.set_optimizer(MAKE["sgd"]())
        weight, sum_ = mx.nd.ones((LENGTH,)), mx.nd.ones((LENGTH,))
        store.broadcast("weight", weight, out=weight)
        sums = mx.kv.create("p3")
        sums.broadcast("sum", sum_, out=sum_)
        with store.joined():
            for _ in range(0 if store.rank == last else 3):
                store.pushpull("weight", mx.nd.ones((LENGTH,)), out=weight)
                sums.pushpull("sum", mx.nd.ones((LENGTH,)), out=mx.nd.zeros((LENGTH,)))
        # Each step subtracts its momentum, of which half stays, and half of a gradient.
        pushing = sum(rank != last for rank in range(store.num_workers))
        np.testing.assert_allclose(weight.asnumpy(), 1 - pushing * (0.5 + 0.75 + 0.875), 1e-5)
        np.testing.assert_array_equal(sum_.asnumpy(), 1)  # without an optimizer it is the script's
        sums.close()
        store.close()


def every_compression_has_the_sum_of_those_who_still_push(_: KVStore) -> None:
    for name, method in TYPES.items():
        if method.store_type is None:  # slim_dp: see slim_dp.py
            check_compression(name, mean=False)
            check_compression(name, mean=True)


def check_compression(name: str, mean: bool) -> None:
    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": name, **EXACT.get(name, {})})
    out = mx.nd.zeros((LENGTH,))
    store.init(0, out)
    for _ in range(EPOCHS):
        for step in range(steps_of(store.rank)):
            store.pushpull(0, mx.nd.ones((LENGTH,)), out=out)
            total = store.num_workers if mean else len(still_pushing(store, step))
            expected = 1 if name == "signsgd" else total
            np.testing.assert_allclose(out.asnumpy(), expected, 1e-5, err_msg=f"{name}, {step}")
        store.join(mean)
    store.close()


def a_last_layer_without_votes_has_its_mean(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": "signsgd", "scale": 1.0, "exclude_last": True})
    outs = {key: mx.nd.zeros((LENGTH,)) for key in (0, 1)}
    for key, out in outs.items():
        store.init(key, out)
    store.adopt_optimizer(mx.optimizer.SGD())  # now the last one is known
    for _ in range(EPOCHS):
        for _ in range(steps_of(store.rank)):
            for key, out in outs.items():
                store.pushpull(key, mx.nd.ones((LENGTH,)), out=out)
            np.testing.assert_allclose(outs[0].asnumpy(), 1)
            np.testing.assert_allclose(outs[1].asnumpy(), store.num_workers)
        store.join(mean=True)
    store.close()


def two_stores_are_joined_together(_: KVStore) -> None:
    first, second = Line("sgd", mx.kv.create("p3")), Line("adam", mx.kv.create("p3"))
    for epoch in range(EPOCHS):
        with first.store.joined(), second.store.joined():
            for step in range(steps_of(first.store.rank)):
                for line in (first, second):
                    line.step(pushed(line.store.rank, 10 * epoch + step))
    first.check(alone(first.store, "sgd"))
    second.check(alone(second.store, "adam"))
    for line in (first, second):
        line.store.close()


def what_nobody_pushes_stays_each_workers_own(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(MAKE["sgd"]())
    weight, average = mx.nd.ones((LENGTH,)), mx.nd.zeros((LENGTH,))
    for key, value in (("weight", weight), ("average", average)):
        store.init(key, value)
        store.pull(key, out=value)
    for epoch in range(EPOCHS):
        with store.joined():
            for step in range(steps_of(store.rank)):
                average += 1 + store.rank
                gradient = mx.nd.array(pushed(store.rank, 10 * epoch + step))
                store.pushpull("weight", gradient, out=weight)
    np.testing.assert_allclose(weight.asnumpy(), alone(store, "sgd"), 1e-4, 1e-5)
    assert_equal(average, (1 + store.rank) * EPOCHS * steps_of(store.rank))
    store.close()


def a_run_goes_on_from_a_snapshot_after_a_block(_: KVStore) -> None:
    line = Line("adam", mx.kv.create("p3"), update_on_kvstore=False)
    own = mx.nd.array([os.getpid()])
    line.store.broadcast_from(0, "own", own)
    directory = Path(tempfile.gettempdir()) / f"kvstore_ext-uneven-{int(own.asscalar())}"
    try:
        line.epochs()
        assert line.store.snapshot(directory, every=2)
        line.store.close()
        again = Line("adam", mx.kv.create("p3"), update_on_kvstore=False)
        assert again.store.restore(directory) == len(list(totals(again.store)))
        again.check(alone(again.store, "adam"))
        again.store.close()
    finally:
        if line.store.rank == 0:
            shutil.rmtree(directory, ignore_errors=True)


def workers_have_their_keys_in_different_orders(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.LAMB(learning_rate=0.5))  # on the workers
    names = ["a", "b"] if store.rank == 0 else ["b", "a"]
    values = {name: mx.nd.full((LENGTH,), 1.0 if name == "a" else 2.0) for name in names}
    for name in names:
        store.broadcast(name, values[name], out=values[name])
    with store.joined():
        for step in range(steps_of(store.rank)):
            for name in names:
                store.pushpull(name, mx.nd.full((LENGTH,), 1 + step), out=values[name])
    updater = mx.optimizer.get_updater(mx.optimizer.LAMB(learning_rate=0.5))
    for index, name in enumerate("ab"):
        value = mx.nd.full((LENGTH,), 1.0 + index)
        for step in range(steps_of(store.num_workers - 1)):
            total = len(still_pushing(store, step)) * (1 + step)
            updater(index, mx.nd.full((LENGTH,), total), value)
        np.testing.assert_allclose(values[name].asnumpy(), value.asnumpy(), rtol=1e-6)
    store.close()


def sparse_keys_are_pushed_with_nothing(_: KVStore) -> None:
    """And updated with the learning rate of rank 0's last step, while that waits."""
    store, optimizer, own = mx.kv.create("p3"), momentum("float32"), momentum("float32")
    schedules = [mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.5) for _ in range(2)]
    optimizer.lr_scheduler, schedule = schedules
    store.set_optimizer(optimizer)
    rows = np.arange(SHAPE[0])
    value = mx.nd.sparse.row_sparse_array((first_value(), rows), shape=SHAPE)
    store.init("rows", value)
    updater, steps = mx.optimizer.get_updater(own), 0
    for epoch in range(EPOCHS):
        for step in range(steps_of(store.num_workers - 1)):
            if step < steps_of(store.rank):
                store.push("rows", gradient(store.rank, 10 * epoch + step, "float32"))
            parts = [gradient(r, 10 * epoch + step, "float32") for r in still_pushing(store, step)]
            total = parts[0]
            for part in parts[1:]:
                total = mx.nd.sparse.add(total, part)
            steps += 1
            if step < steps_of(0):
                own.lr = schedule(steps)
            updater(0, total, value)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with store.joined(mean=epoch > 0):
                pass
        told = [each.filename for each in caught if "'rows'" in str(each.message)]
        assert told == [__file__] * (epoch > 0 and store.num_workers > 1)
        np.testing.assert_allclose(all_rows(store, "rows"), value.asnumpy(), 1e-5)
    store.close()


def a_dense_weight_with_sparse_gradients_is_everybodys_again(_: KVStore) -> None:
    store = mx.kv.create("p3")
    network = gluon.nn.Embedding(12, 3, sparse_grad=True)
    network.initialize(mx.init.One())
    trainer = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 1.0}, store)
    expected = np.ones((12, 3))
    for _ in range(EPOCHS):
        with store.joined():
            for _ in range(steps_of(store.rank)):
                with autograd.record():
                    loss = network(mx.nd.array([store.rank, 7])).sum()
                loss.backward()
                trainer.step(1)
        for step in range(steps_of(store.num_workers - 1)):
            for rank in still_pushing(store, step):
                expected[[rank, 7]] -= 1
        assert_equal(network.weight.data(), expected)
    store.close()


CHECKS = {
    check.__name__: check
    for check in (
        sums_are_of_those_who_still_push,
        a_mean_is_of_those_who_still_push,
        a_trainer_has_what_the_servers_have_updated,
        a_trainer_has_what_every_worker_has_updated,
        counts_are_taken_over_where_workers_have_devices_of_other_numbers,
        what_is_handed_over_travels_in_pieces,
        a_trainer_has_what_the_store_has_updated_here,
        schedules_go_on_where_the_others_are,
        a_module_has_what_the_servers_have_updated,
        a_module_has_what_every_worker_has_updated,
        a_join_counts_on_from_states_that_rank_0_alone_has_loaded,
        numpys_numbers_are_counts,
        who_has_not_pushed_yet_gets_what_others_have_trained,
        every_compression_has_the_sum_of_those_who_still_push,
        a_last_layer_without_votes_has_its_mean,
        two_stores_are_joined_together,
        workers_have_their_keys_in_different_orders,
        what_nobody_pushes_stays_each_workers_own,
        a_run_goes_on_from_a_snapshot_after_a_block,
    )
}
# A process's later stores can have no such keys.
SPARSE = {
    check.__name__: check
    for check in (
        sparse_keys_are_pushed_with_nothing,
        a_dense_weight_with_sparse_gradients_is_everybodys_again,
    )
}
