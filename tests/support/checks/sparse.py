"""Row-sparse weights and gradients: what a store makes of them is what one process does."""

from __future__ import annotations

import functools
from typing import Any
from unittest import mock

import mxnet as mx
import numpy as np
from kvstore_ext.protocol import state_pieces
from mxnet.kvstore import KVStore

from tests.support.checks.values import DEVICES

SHAPE = (12, 3)


def rows_of(rank: int, step: int) -> list[int]:
    """Each worker has a row of its own, and one that all have."""
    return sorted({(rank + step) % SHAPE[0], 7})


def gradient(rank: int, step: int, dtype: str) -> mx.nd.NDArray:
    rows = rows_of(rank, step)
    values = np.arange(1, 1 + len(rows) * SHAPE[1]).reshape(-1, SHAPE[1]) * (rank + 1) / 8
    return mx.nd.sparse.row_sparse_array((values, rows), shape=SHAPE, dtype=dtype)


def first_value() -> np.ndarray:
    """With rows of zeros, which MXNet leaves out of a row-sparse array."""
    value = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE) / 4
    value[3:6] = 0
    return value


def alone(
    store: KVStore, steps: int, stype: str, optimizer: mx.optimizer.Optimizer | None = None
) -> np.ndarray:
    """What one process makes of the gradients of all workers."""
    updater = mx.optimizer.get_updater(optimizer or momentum("float32"))
    value = mx.nd.array(first_value())
    if stype == "row_sparse":  # with all its rows, as the servers keep it
        rows = np.arange(SHAPE[0])
        value = mx.nd.sparse.row_sparse_array((first_value(), rows), shape=SHAPE)
    for step in range(steps):
        parts = [gradient(rank, step, "float32") for rank in range(store.num_workers)]
        total = parts[0]
        for part in parts[1:]:
            total = mx.nd.sparse.add(total, part)
        updater(0, total, value)
    return value.asnumpy()


def momentum(dtype: str) -> mx.optimizer.Optimizer:
    return mx.optimizer.SGD(
        learning_rate=0.5, momentum=0.5, wd=0.125, multi_precision=dtype == "float16"
    )


def all_rows(store: KVStore, key: Any, dtype: str = "float32") -> np.ndarray:
    out = mx.nd.sparse.zeros("row_sparse", SHAPE, dtype=dtype)
    store.row_sparse_pull(key, out=out, row_ids=mx.nd.arange(SHAPE[0], dtype="int64"))
    return out.asnumpy()


def sparse_weights_train(_: KVStore, dtype: str = "float32") -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(momentum(dtype))
    value = mx.nd.array(first_value(), dtype=dtype).tostype("row_sparse")
    store.init("rows", value)
    for step in range(3):
        store.push("rows", gradient(store.rank, step, dtype))
    found = all_rows(store, "rows", dtype)
    # The servers' weights are of float32 either way.
    expected = alone(store, 3, "row_sparse")
    np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == "float16" else 1e-6)
    store.close()


def sparse_weights_of_float16_train(store: KVStore) -> None:
    sparse_weights_train(store, "float16")


def a_sparse_weight_may_begin_without_rows(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.init(3, mx.nd.sparse.zeros("row_sparse", SHAPE))
    np.testing.assert_array_equal(all_rows(store, 3), np.zeros(SHAPE))
    store.close()


def broadcast_fills_row_sparse_arrays(_: KVStore) -> None:
    store = mx.kv.create("p3")
    value = mx.nd.array(first_value() + store.rank).tostype("row_sparse")
    outs = [mx.nd.sparse.zeros("row_sparse", SHAPE, ctx=device) for device in DEVICES]
    store.broadcast("rows", value, out=outs)
    for out in outs:
        np.testing.assert_array_equal(out.asnumpy(), first_value())
    store.close()


def dense_weights_with_sparse_gradients_train(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(momentum("float32"))
    value = mx.nd.array(first_value())
    store.init("before", mx.nd.ones((2,)))
    store.broadcast("weight", value, out=value)
    for step in range(3):
        store.push("weight", gradient(store.rank, step, "float32"))
        store.pull("weight", out=value)
    expected = alone(store, 3, "default")
    np.testing.assert_allclose(value.asnumpy(), expected, rtol=1e-6)
    store.close()


def rows_of_zeros_stay_with_optimizers_for_dense_weights(_: KVStore) -> None:
    for name in ("rmsprop", "nag"):
        make = functools.partial(mx.optimizer.create, name, learning_rate=0.5)
        store = mx.kv.create("p3")
        store.set_optimizer(make())
        store.init("rows", mx.nd.array(first_value()).tostype("row_sparse"))
        for step in range(3):
            store.push("rows", gradient(store.rank, step, "float32"))
        expected = alone(store, 3, "default", make())
        np.testing.assert_allclose(all_rows(store, "rows"), expected, rtol=1e-5)
        store.close()


def gradients_without_rows_change_nothing(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    store.init("rows", mx.nd.ones(SHAPE).tostype("row_sparse"))
    store.push("rows", mx.nd.sparse.zeros("row_sparse", SHAPE))
    np.testing.assert_array_equal(all_rows(store, "rows"), np.ones(SHAPE))
    store.close()


def an_embedding_with_sparse_gradients_trains(_: KVStore) -> None:
    """A mixed model, in a Trainer, against one process with the batches of all workers."""
    rounds = 3

    def train(store: Any, ranks: list[int]) -> list[np.ndarray]:
        mx.random.seed(3)
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Embedding(20, 4, sparse_grad=True), mx.gluon.nn.Dense(2))
        net.initialize(mx.init.Uniform(1))
        net(mx.nd.array([[0, 1]]))
        options = {"learning_rate": 0.1, "momentum": 0.5}
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", options, kvstore=store)
        for step in range(rounds):
            with mx.autograd.record():
                batch = [[(3 * rank + step) % 20, 5] for rank in ranks]
                loss = (net(mx.nd.array(batch)) ** 2).sum()
            loss.backward()
            trainer.step(1)
        return [parameter.data().asnumpy() for parameter in net.collect_params().values()]

    store = mx.kv.create("p3")
    found = train(store, [store.rank])
    expected = train(None, list(range(store.num_workers)))
    for mine, right in zip(found, expected):
        np.testing.assert_allclose(mine, right, rtol=1e-4, atol=1e-6)
    store.close()


def sparse_gradients_of_several_devices_are_summed(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    dense = [mx.nd.zeros(SHAPE, ctx=device) for device in DEVICES]
    store.broadcast("dense", dense[0], out=dense)
    store.init("rows", mx.nd.zeros(SHAPE).tostype("row_sparse"))
    for key in ("dense", "rows"):
        store.push(key, [mx.nd.ones(SHAPE, ctx=d).tostype("row_sparse") for d in DEVICES])
    store.pull("dense", out=dense)
    expected = np.full(SHAPE, -len(DEVICES) * store.num_workers)
    for found in (*(out.asnumpy() for out in dense), all_rows(store, "rows")):
        np.testing.assert_array_equal(found, expected)
    whole = [mx.nd.zeros(SHAPE, ctx=device) for device in DEVICES]
    store.pull("rows", out=whole)
    for out in whole:
        np.testing.assert_array_equal(out.asnumpy(), expected)
    outs = [mx.nd.sparse.zeros("row_sparse", SHAPE, ctx=device) for device in DEVICES]
    store.row_sparse_pull("rows", out=outs, row_ids=mx.nd.array([2, 7, 2], dtype="int64"))
    for out in outs:
        assert out.asnumpy().any(axis=1).nonzero()[0].tolist() == [2, 7]
    store.close()


def sparse_keys_have_multipliers_and_hear_of_changes(_: KVStore) -> None:
    """Also where the optimizer updates dense keys on the workers."""
    for optimizer in (mx.optimizer.SGD(learning_rate=1), mx.optimizer.LARS(learning_rate=1, eta=1)):
        store = mx.kv.create("p3")
        optimizer.set_lr_mult({3: 0.5})
        store.set_optimizer(optimizer)
        store.init(3, mx.nd.ones(SHAPE).tostype("row_sparse"))
        store.push(3, mx.nd.ones(SHAPE).tostype("row_sparse"))
        first = all_rows(store, 3)
        # LARS makes a step as long as the weight, before lr_mult: both are the same here.
        factor = 0.5 * (store.num_workers if isinstance(optimizer, mx.optimizer.SGD) else 1)
        np.testing.assert_allclose(first, np.full(SHAPE, 1 - factor), rtol=1e-5)
        optimizer.lr = 0.0
        store.push(3, mx.nd.ones(SHAPE).tostype("row_sparse"))
        np.testing.assert_array_equal(all_rows(store, 3), first)
        store.close()


def a_schedule_counts_sparse_keys_once_where_workers_update(_: KVStore) -> None:
    store = mx.kv.create("p3")
    schedule = mx.lr_scheduler.FactorScheduler(1, 0.5)
    optimizer = mx.optimizer.LARS(learning_rate=0.5, eta=1, lr_scheduler=schedule)
    store.set_optimizer(optimizer)
    dense, rows = mx.nd.ones(SHAPE), mx.nd.ones(SHAPE).tostype("row_sparse")
    store.broadcast(1, dense, out=dense)
    store.init(3, rows)
    for step in range(1, 5):
        store.push(3, rows)
        store.pushpull(1, mx.nd.ones(SHAPE), out=dense)
        assert optimizer.num_update == step
    # A step is as long as the weight, times the rate.
    expected = np.prod([1 - 0.5**step for step in range(1, 5)])
    np.testing.assert_allclose(all_rows(store, 3), np.full(SHAPE, expected), atol=1e-6)
    store.close()


def states_of_sparse_keys_of_three_dimensions_come_back(_: KVStore) -> None:
    shape = (6, 2, 3)
    found = []
    for again in (False, True):
        store = mx.kv.create("p3")
        store.set_optimizer(mx.optimizer.SGD(learning_rate=1, momentum=0.5))
        store.init(3, mx.nd.ones(shape).tostype("row_sparse"))
        for _step in range(2):
            store.push(3, mx.nd.ones(shape).tostype("row_sparse"))
            if again:
                store._updater.set_states(store._updater.get_states(True))
                store.barrier()
        out = mx.nd.sparse.zeros("row_sparse", shape)
        store.row_sparse_pull(3, out=out, row_ids=mx.nd.arange(6, dtype="int64"))
        found.append(out.asnumpy())
        store.close()
    np.testing.assert_array_equal(*found)
    assert (found[0] != 1).all()


def states_of_sparse_keys_can_be_saved_and_loaded(_: KVStore) -> None:
    """What six steps make of it is what three do, and three more in another store."""
    found = []
    for begins, piece in (([0], state_pieces.PIECE), ([0, 3], state_pieces.PIECE), ([0, 3], 20)):
        value, states, optimizer = first_value(), b"", momentum("float32")
        for begin in begins:
            store = mx.kv.create("p3")
            store.set_optimizer(optimizer)
            store.init("rows", mx.nd.array(value).tostype("row_sparse"))
            with mock.patch.object(state_pieces, "PIECE", piece):
                if states:
                    store._updater.set_states(states)
                for step in range(begin, begin + 6 // len(begins)):
                    store.push("rows", gradient(store.rank, step, "float32"))
                value = all_rows(store, "rows")
                states = store._updater.get_states(dump_optimizer=True)
            store.barrier()  # a state is asked for before the others go on
            store.close()
        found.append(value)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


CHECKS = {
    check.__name__: check
    for check in (
        sparse_weights_train,
        sparse_weights_of_float16_train,
        a_sparse_weight_may_begin_without_rows,
        broadcast_fills_row_sparse_arrays,
        dense_weights_with_sparse_gradients_train,
        rows_of_zeros_stay_with_optimizers_for_dense_weights,
        gradients_without_rows_change_nothing,
        an_embedding_with_sparse_gradients_trains,
        sparse_gradients_of_several_devices_are_summed,
        sparse_keys_have_multipliers_and_hear_of_changes,
        a_schedule_counts_sparse_keys_once_where_workers_update,
        states_of_sparse_keys_of_three_dimensions_come_back,
        states_of_sparse_keys_can_be_saved_and_loaded,
    )
}
