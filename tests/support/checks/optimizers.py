"""What optimizers do on servers. Servers keep the last one: these checks come last on a store."""
from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np
from mxnet.kvstore import KVStore

from tests.support.checks.values import assert_equal, contribution, ours, pulled, total


def servers_update_with_the_optimizer_that_was_set(store: KVStore) -> None:
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    store.init(["updated", 20], [ours(store, (30,), 5)] * 2)
    expected = contribution(0, (30,), 5)
    for number in (1, 2):
        store.push(["updated", 20], [ours(store, (30,), number)] * 2)
        expected = expected - 0.5 * total(store, (30,), number)
        for key in ("updated", 20):
            assert_equal(pulled(store, key, (30,)), expected)


def arrays_of_one_element_no_dimension_or_no_element_are_updated(store: KVStore) -> None:
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    with mx.util.np_shape(True):
        for shape in ((1,), (), (0,), (3, 0, 2)):
            store.init(f"update {shape}", mx.nd.ones(shape))
            out = mx.nd.full(shape, 77)
            store.pushpull(f"update {shape}", ours(store, shape), out=out)
            assert_equal(out, 1 - total(store, shape))
            mx.nd.waitall()  # asnumpy of an empty array does not wait


def another_optimizer_begins_afresh(store: KVStore) -> None:
    store.init("afresh", mx.nd.zeros((30,)))
    expected = np.zeros((30,))
    for run in (1, 2):
        store.set_optimizer(mx.optimizer.SGD(learning_rate=1, momentum=0.5))
        momentum = np.zeros((30,))
        for number in (run, run + 1):
            store.push("afresh", ours(store, (30,), number))
            momentum = 0.5 * momentum - total(store, (30,), number)
            expected += momentum
            assert_equal(pulled(store, "afresh", (30,)), expected)


def what_was_changed_of_an_optimizer_is_not_changed_of_the_next(store: KVStore) -> None:
    store.init("next", mx.nd.zeros((30,)))
    expected = np.zeros((30,))
    for _ in range(2):
        optimizer = mx.optimizer.SGD(learning_rate=1)
        store.set_optimizer(optimizer)
        for rate in (1, 0.25):
            optimizer.set_learning_rate(rate)
            store.push("next", ours(store, (30,)))
            expected -= rate * total(store, (30,))
            assert_equal(pulled(store, "next", (30,)), expected)


def a_key_that_turns_sparse_keeps_its_state(store: KVStore) -> None:
    options = {"learning_rate": 0.1, "momentum": 0.9, "lazy_update": False}
    store.set_optimizer(mx.optimizer.SGD(**options))
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(**options))
    alone = mx.nd.ones((6, 5))
    store.init("turning", alone)
    for number in range(6):
        gradient = ours(store, (6, 5), number)
        sum_ = mx.nd.array(total(store, (6, 5), number))
        if number >= 3:
            gradient, sum_ = gradient.tostype("row_sparse"), sum_.tostype("row_sparse")
        store.push("turning", gradient)
        updater("turning", sum_, alone)
    out = mx.nd.zeros((6, 5))
    store.pull("turning", out=out)
    assert_equal(out, alone.asnumpy())


def multipliers_are_found_by_key_and_by_name(store: KVStore) -> None:
    optimizer = mx.optimizer.SGD(learning_rate=1, param_idx2name={30: "named_weight"})
    optimizer.set_lr_mult({"named_weight": 2, "factor 4": 4})
    store.set_optimizer(optimizer)
    for key, factor in ((30, 2), ("factor 4", 4), ("factor 1", 1)):
        store.init(key, mx.nd.zeros((5,)))
        store.push(key, ours(store, (5,)))
        assert_equal(pulled(store, key, (5,)), -factor * total(store, (5,)))


def multipliers_of_sparse_keys_are_found_by_name(store: KVStore) -> None:
    optimizer = mx.optimizer.SGD(learning_rate=1)
    optimizer.set_lr_mult({"frozen": 0, "fast": 2})
    store.set_optimizer(optimizer)
    rows = mx.nd.arange(4, dtype="int64")
    gradient = ours(store, (4, 2)).tostype("row_sparse")
    for name, factor in (("plain", 1), ("frozen", 0), ("fast", 2)):
        store.init(name, mx.nd.zeros((4, 2)).tostype("row_sparse"))
        store.push(name, gradient)
        value = mx.nd.zeros((4, 2)).tostype("row_sparse")
        store.row_sparse_pull(name, out=value, row_ids=rows)
        assert_equal(value.tostype("default"), -factor * total(store, (4, 2)))
    optimizer.set_lr_mult({"frozen": 3})
    store.push("frozen", gradient)
    store.row_sparse_pull("frozen", out=value, row_ids=rows)
    assert_equal(value.tostype("default"), -3 * total(store, (4, 2)))


def sparse_keys_have_the_rates_that_they_were_pushed_with(store: KVStore) -> None:
    """As where two embeddings are trained in turns, each at a rate of its own."""
    optimizer = mx.optimizer.SGD(learning_rate=1)
    store.set_optimizer(optimizer)
    gradient = mx.nd.ones((4, 2)).tostype("row_sparse")
    rates = {"slow": 0.25, "quick": 2.0, 50: 0.5, 51: 4.0}
    for key in rates:
        store.init(key, mx.nd.zeros((4, 2)).tostype("row_sparse"))
    for step in range(1, 4):
        for key, rate in rates.items():
            optimizer.lr = rate
            store.push(key, gradient)
            value = mx.nd.zeros((4, 2)).tostype("row_sparse")
            store.row_sparse_pull(key, out=value, row_ids=mx.nd.arange(4, dtype="int64"))
            expected = np.full((4, 2), -rate * step * store.num_workers)
            assert_equal(value.tostype("default"), expected)


def multipliers_told_by_index_are_those_of_keys_that_are_words(_: KVStore) -> None:
    """As Module's are; the optimizer runs on the servers, or, LAMB, on the workers."""
    names = {0: "first_weight", 1: "second_bias"}
    for kind in ("sgd", "lamb"):
        store = mx.kv.create("p3")
        made, other = (
            mx.optimizer.create(kind, learning_rate=0.5, wd=0.5, param_idx2name=names)
            for _copy in range(2)
        )
        for optimizer in (made, other):
            optimizer.set_lr_mult({0: 0.25})
            optimizer.set_wd_mult({1: 2.0})
        store.set_optimizer(made)
        updater = mx.optimizer.get_updater(other)
        alone = {number: mx.nd.ones((5,)) for number in names}
        store.init(list(names.values()), [mx.nd.ones((5,)) for _name in names])
        for step, factor in enumerate((0.25, 0.5)):
            for optimizer in (made, other):
                optimizer.set_lr_mult({0: factor})
            for number, name in names.items():
                store.push(name, ours(store, (5,), step))
                updater(number, mx.nd.array(total(store, (5,), step)), alone[number])
                found, expected = pulled(store, name, (5,)).asnumpy(), alone[number].asnumpy()
                np.testing.assert_allclose(found, expected, 1e-5, 1e-6, err_msg=f"{kind} {name}")
        store.close()


def as_in_one_process(make: Any, pushes: list[Any], dtype: str = "float32") -> None:
    """Pushes to keys of a new store in an order, without waiting; asserts what one process makes
    of that."""
    store = mx.kv.create("p3")
    shapes = {key: (1 + 70 * (number % 2), 5) for number, key in enumerate(sorted(set(pushes)))}
    store.set_optimizer(make())
    updater = mx.optimizer.get_updater(make())
    alone = {key: mx.nd.ones(shape, dtype=dtype) for key, shape in shapes.items()}
    for key, shape in shapes.items():
        store.init(key, mx.nd.ones(shape, dtype=dtype))
    for number, key in enumerate(pushes):
        store.push(key, ours(store, shapes[key], number).astype(dtype))
        updater(key, mx.nd.array(total(store, shapes[key], number), dtype=dtype), alone[key])
    for key, shape in shapes.items():
        assert_equal(pulled(store, key, shape, dtype=dtype), alone[key].asnumpy())
    store.close()


def every_key_counts_its_own_updates(store: KVStore) -> None:
    def make() -> mx.optimizer.Optimizer:
        return mx.optimizer.Adam(learning_rate=0.1)

    as_in_one_process(make, ["own 1", "own 1", "own 2", "own 1", "own 3", "own 2", "own 1"])


def an_optimizer_that_has_made_updates_counts_on(store: KVStore) -> None:
    def make() -> mx.optimizer.Optimizer:
        used = mx.optimizer.Adam(learning_rate=0.1)
        used._update_count(["old", "old", "older", "older", "older"])
        return used

    as_in_one_process(make, ["old", "older", "new", "old", "new"])


def a_schedule_follows_the_pushes_not_the_speed_of_a_key(store: KVStore) -> None:
    def make() -> mx.optimizer.Optimizer:
        schedule = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=1)
        return mx.optimizer.SGD(learning_rate=1, lr_scheduler=schedule)

    as_in_one_process(make, ["slow key", "speedy key"] * 12)


def a_schedule_on_workers_does_not_ask_for_an_order_of_keys(_: KVStore) -> None:
    """With LAMB, of whose settings the servers see that all workers have the same."""

    def make() -> mx.optimizer.Optimizer:
        schedule = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=1)
        return mx.optimizer.LAMB(learning_rate=1, lr_scheduler=schedule)

    store = mx.kv.create("p3")
    store.set_optimizer(make())
    updater = mx.optimizer.get_updater(make())
    keys = ["one", "other"]
    store.init(keys, [mx.nd.ones((5,)) for _key in keys])
    alone = {key: mx.nd.ones((5,)) for key in keys}
    for step in range(6):
        for key in keys if store.rank % 2 else keys[::-1]:
            store.push(key, ours(store, (5,), step))
            updater(key, mx.nd.array(total(store, (5,), step)), alone[key])
    for key in keys:
        found = pulled(store, key, (5,)).asnumpy()
        np.testing.assert_allclose(found, alone[key].asnumpy(), rtol=1e-6)
    store.close()


def float16_is_updated_in_float32_with_multi_precision(store: KVStore) -> None:
    def make() -> mx.optimizer.Optimizer:
        return mx.optimizer.SGD(learning_rate=1e-4, momentum=0.9, multi_precision=True)

    as_in_one_process(make, ["half"] * 8, dtype="float16")


def the_noise_of_sgld_is_each_elements_own(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGLD(learning_rate=1))
    store.init("noise", mx.nd.zeros((100,)))  # on all servers
    store.push("noise", mx.nd.zeros((100,)))
    out = mx.nd.zeros((100,))
    store.pull("noise", out=out)
    assert len(set(out.asnumpy())) == 100
    store.close()


CHECKS = {
    check.__name__: check
    for check in (
        servers_update_with_the_optimizer_that_was_set,
        arrays_of_one_element_no_dimension_or_no_element_are_updated,
        another_optimizer_begins_afresh,
        what_was_changed_of_an_optimizer_is_not_changed_of_the_next,
        a_key_that_turns_sparse_keeps_its_state,
        multipliers_are_found_by_key_and_by_name,
        multipliers_of_sparse_keys_are_found_by_name,
        sparse_keys_have_the_rates_that_they_were_pushed_with,
        multipliers_told_by_index_are_those_of_keys_that_are_words,
        every_key_counts_its_own_updates,
        an_optimizer_that_has_made_updates_counts_on,
        a_schedule_follows_the_pushes_not_the_speed_of_a_key,
        a_schedule_on_workers_does_not_ask_for_an_order_of_keys,
        float16_is_updated_in_float32_with_multi_precision,
        the_noise_of_sgld_is_each_elements_own,
    )
}
