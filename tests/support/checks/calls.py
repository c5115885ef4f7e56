"""What a store's calls must do, alone and with other workers: each check runs on all of them."""
from __future__ import annotations

import tempfile
import time
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet.kvstore import KVStore

from tests.support.checks.values import DEVICES, assert_equal, contribution, ours, pulled, total


def it_knows_its_place(store: KVStore) -> None:
    assert store.type == "dist_sync_p3"
    assert 0 <= store.rank < store.num_workers


def a_key_begins_with_the_value_of_rank_0(store: KVStore) -> None:
    store.init("begin", ours(store, (7, 5)))
    assert_equal(pulled(store, "begin", (7, 5)), contribution(0, (7, 5)))
    out = ours(store, (7, 5))
    store.broadcast("begin too", out, out=out)
    assert_equal(out, contribution(0, (7, 5)))


def broadcast_fills_lists_and_devices(store: KVStore) -> None:
    values = [ours(store, (9,), number) for number in (1, 2)]
    outs = [[mx.nd.zeros((9,), device) for device in DEVICES] for _ in values]
    store.broadcast(["list 1", "list 2"], values, out=outs)
    for number, per_device in enumerate(outs, 1):
        for out in per_device:
            assert_equal(out, contribution(0, (9,), number))


def push_and_pull_give_the_sum_of_all_workers(store: KVStore) -> None:
    shape = (37, 29)  # several slices, not all of one length
    store.init("sum", mx.nd.ones(shape))
    for number in (1, 2, 3):
        store.push("sum", ours(store, shape, number))
        assert_equal(pulled(store, "sum", shape), total(store, shape, number))


def numbers_and_strings_are_different_keys(store: KVStore) -> None:
    keys = [3, "3", "ключ", 2**63 - 1]
    for number, key in enumerate(keys):
        store.init(key, mx.nd.zeros((4,)))
        store.push(key, ours(store, (4,), number))
    for number, key in enumerate(keys):
        assert_equal(pulled(store, key, (4,)), total(store, (4,), number))


def lists_of_keys_take_lists_of_arrays(store: KVStore) -> None:
    keys, shapes = ["a", "b", 7], [(3,), (4, 5), (6, 1, 2)]
    store.init(keys, [mx.nd.zeros(shape) for shape in shapes])
    store.push(keys, [ours(store, shape) for shape in shapes])
    outs = [mx.nd.zeros(shape) for shape in shapes]
    store.pull(keys, out=outs)
    for shape, out in zip(shapes, outs):
        assert_equal(out, total(store, shape))


def several_devices_are_summed_and_all_filled(store: KVStore) -> None:
    for key, call in (("split", "push, pull"), ("joint", "pushpull")):
        store.init(key, mx.nd.zeros((33, 3)))
        for first in (1, 3):
            values = [ours(store, (33, 3), first + i, ctx=DEVICES[i]) for i in (0, 1)]
            outs = [mx.nd.zeros((33, 3), device) for device in DEVICES]
            if call == "pushpull":
                store.pushpull(key, values, out=outs)
            else:
                store.push(key, values)
                store.pull(key, out=outs)
            for out in outs:
                assert_equal(out, total(store, (33, 3), first, first + 1))


def lists_of_keys_take_lists_of_lists_of_devices(store: KVStore) -> None:
    keys = ["nested 1", "nested 2"]
    store.init(keys, [mx.nd.zeros((5,))] * 2)
    values = [[ours(store, (5,), 2 * k + d, ctx=DEVICES[d]) for d in (0, 1)] for k in (0, 1)]
    outs = [[mx.nd.zeros((5,), device) for device in DEVICES] for _ in keys]
    store.pushpull(keys, values, out=outs)
    for k, per_device in enumerate(outs):
        for out in per_device:
            assert_equal(out, total(store, (5,), 2 * k, 2 * k + 1))


def a_key_that_stands_twice_gets_the_sum_of_both(store: KVStore) -> None:
    store.init("twice", mx.nd.zeros((6,)))
    store.push(["twice", "twice"], [ours(store, (6,), 1), ours(store, (6,), 2)])
    assert_equal(pulled(store, "twice", (6,)), total(store, (6,), 1, 2))


def a_value_can_be_pulled_again_and_again(store: KVStore) -> None:
    store.init("again", mx.nd.zeros((50,)))
    for number in (1, 2):
        store.push("again", ours(store, (50,), number))
        for _ in range(3):
            assert_equal(pulled(store, "again", (50,)), total(store, (50,), number))


def after_several_pushes_the_last_one_counts(store: KVStore) -> None:
    store.init("pushes", mx.nd.zeros((50,)))
    for number in range(10):
        store.push("pushes", ours(store, (50,), number))
    assert_equal(pulled(store, "pushes", (50,)), total(store, (50,), 9))


def pushpull_without_out_overwrites_what_was_pushed(store: KVStore) -> None:
    store.init("over", mx.nd.zeros((8,)))
    values = [ours(store, (8,), number, ctx=DEVICES[number]) for number in (0, 1)]
    store.pushpull("over", values)
    for value in values:
        assert_equal(value, total(store, (8,), 0, 1))


def the_gradient_may_be_the_result(store: KVStore) -> None:
    store.init("same", mx.nd.zeros((8,)))
    value = ours(store, (8,))
    store.pushpull("same", value, out=value)
    assert_equal(value, total(store, (8,)))


def parts_of_larger_arrays_can_be_pushed_and_filled(store: KVStore) -> None:
    store.init("part", mx.nd.zeros((2, 30)))
    whole = mx.nd.zeros((6, 30))
    whole[2:4] = ours(store, (2, 30))
    store.pushpull("part", whole[2:4], out=whole[4:6])
    assert_equal(whole[4:6], total(store, (2, 30)))
    assert_equal(whole[2:4], contribution(store.rank, (2, 30)))
    assert_equal(whole[0:2], 0)


def a_gradient_may_be_overwritten_at_once(store: KVStore) -> None:
    store.init("reused", mx.nd.zeros((400, 100)))
    value, out = ours(store, (400, 100)), mx.nd.zeros((400, 100))
    store.pushpull("reused", value, out=out)
    value[:] = 1000
    assert_equal(out, total(store, (400, 100)))


def keys_may_come_late(store: KVStore) -> None:
    for late in range(4):
        store.init(f"late {late}", mx.nd.zeros((20,)))
        for key in range(late + 1):
            store.push(f"late {key}", ours(store, (20,), late))
        for key in range(late + 1):
            assert_equal(pulled(store, f"late {key}", (20,)), total(store, (20,), late))


def workers_may_use_keys_in_different_orders(store: KVStore) -> None:
    keys = list(range(100, 110))
    mine = keys if store.rank % 2 else keys[::-1]
    for key in mine:
        store.init(key, ours(store, (key,), key))
    for key in mine:
        assert_equal(pulled(store, key, (key,)), contribution(0, (key,), key))
    np.random.RandomState(store.rank).shuffle(mine)
    outs = {key: mx.nd.zeros((key,)) for key in mine}
    for key in mine:
        store.pushpull(key, ours(store, (key,), key), out=outs[key])
    for key in keys:
        assert_equal(outs[key], total(store, (key,), key))


def any_priority_is_accepted(store: KVStore) -> None:
    for priority in (0, -1, 2**31 - 1, -(2**31), 2**40, -(2**40)):
        store.init(f"priority {priority}", mx.nd.zeros((3,)))
        out = mx.nd.zeros((3,))
        store.pushpull(f"priority {priority}", ours(store, (3,)), out=out, priority=priority)
        assert_equal(out, total(store, (3,)))


def arrays_of_one_element_no_dimension_or_no_element_work(store: KVStore) -> None:
    with mx.util.np_shape(True):
        for shape in ((1,), (1, 1), (), (0,), (3, 0, 2)):
            store.init(f"shape {shape}", ours(store, shape))
            out = pulled(store, f"shape {shape}", shape)
            assert_equal(out, contribution(0, shape))
            for call in ("devices", "one"):
                values = [ours(store, shape, i, ctx=DEVICES[i]) for i in (0, 1)]
                if call == "devices":
                    store.pushpull(f"shape {shape}", values)
                    assert_equal(values[1], total(store, shape, 0, 1))
                else:
                    store.pushpull(f"shape {shape}", values[0], out=out)
                    assert_equal(out, total(store, shape, 0))
                assert out.shape == shape
                mx.nd.waitall()  # asnumpy of an empty array does not wait


def float64_keeps_all_its_digits(store: KVStore) -> None:
    tiny = mx.nd.array([1, 1 + 1e-15, 1e-300], dtype="float64")
    store.init("wide", tiny)
    store.push("wide", tiny)
    out = pulled(store, "wide", (3,), dtype="float64")
    assert_equal(out, tiny.asnumpy() * store.num_workers)


def float16_is_summed_in_float32(store: KVStore) -> None:
    one_large = [2048 if store.rank == 0 else 1, 60000 if store.rank < 2 else -60000]
    store.init("narrow", mx.nd.zeros((2,), dtype="float16"))
    store.push("narrow", mx.nd.array(one_large, dtype="float16"))
    found = pulled(store, "narrow", (2,), dtype="float16").asnumpy()
    workers = store.num_workers
    assert found[0] == 2048 + workers - 1  # in float16, 2048 + 1 is 2048
    if workers == 3:
        assert found[1] == 60000  # in float16, 120000 is infinite


def numpy_arrays_of_mxnet_work(store: KVStore) -> None:
    store.init("np", mx.np.zeros((2, 3)))
    values = [mx.np.array(contribution(store.rank, (2, 3), i), ctx=DEVICES[i]) for i in (0, 1)]
    outs = [mx.np.zeros((2, 3), ctx=device) for device in DEVICES]
    store.pushpull("np", values, out=outs)
    for out in outs:
        assert_equal(out, total(store, (2, 3), 0, 1))
    store.pushpull("np", values[0], out=outs[0])
    assert_equal(outs[0], total(store, (2, 3), 0))


def weights_in_a_layout_of_the_computation_work(store: KVStore) -> None:
    layer = mx.gluon.nn.Conv2D(32, 3, in_channels=16, use_bias=False)
    layer.initialize()
    shape = layer.weight.shape
    store.init("layout", layer.weight.data())
    for number in (1, 2):
        layer(mx.nd.ones((1, 16, 8, 8))).wait_to_read()  # oneDNN now keeps the weights its own way
        store.pushpull("layout", layer.weight.data())
        store.pushpull("layout", ours(store, shape, number), out=layer.weight.data())
        assert_equal(layer.weight.data(), total(store, shape, number))


def nothing_of_a_call_is_in_a_graph_that_is_recorded(store: KVStore) -> None:
    """As the first forward pass of a network with row-sparse weights makes some."""
    weights = [mx.nd.zeros((9,), device) for device in DEVICES]
    gradients = [ours(store, (9,), number, ctx=DEVICES[number]) for number in (0, 1)]
    for weight, gradient in zip(weights, gradients):
        mx.autograd.mark_variables([weight], [gradient])
    with mx.autograd.record(train_mode=False):
        store.broadcast("recorded", weights[0], out=weights)
        store.pushpull("recorded", gradients, out=weights)
        store.pull("recorded", out=weights)
        assert mx.autograd.is_recording()
    for weight in weights:
        assert_equal(weight, total(store, (9,), 0, 1))


def sparse_keys_travel_through_the_stock_store(store: KVStore) -> None:
    store.init("rows", mx.nd.ones((6, 2)).tostype("row_sparse"))
    mine = mx.nd.sparse.row_sparse_array(([[1, 2]], [store.rank]), shape=(6, 2))
    store.init("dense beside", mx.nd.zeros((2,)))
    store.push(["dense beside", "rows"], [ours(store, (2,)), mine])
    out = mx.nd.zeros((6, 2)).tostype("row_sparse")
    store.row_sparse_pull("rows", out=out, row_ids=mx.nd.arange(6))
    pushed = out.asnumpy()[: store.num_workers]
    np.testing.assert_array_equal(pushed, [[1, 2]] * store.num_workers)
    assert_equal(pulled(store, "dense beside", (2,)), total(store, (2,)))


def a_barrier_waits_for_all_workers(store: KVStore) -> None:
    directory = Path(tempfile.gettempdir())
    name = mx.nd.array([np.random.randint(1 << 20)])
    store.broadcast("barrier", name, out=name)
    mark = f"kvstore_ext-barrier-{int(name.asscalar())}"
    if store.rank == store.num_workers - 1 > 0:
        time.sleep(0.3)  # so that a barrier which waits for nobody is noticed
    Path(directory, f"{mark}-{store.rank}").touch()
    store.barrier()
    there = [Path(directory, f"{mark}-{rank}").exists() for rank in range(store.num_workers)]
    store.barrier()
    Path(directory, f"{mark}-{store.rank}").unlink()
    assert all(there)


def slices_are_counted_with_their_messages(store: KVStore) -> None:
    shape, slices = (10000,), 400  # at the least: of 100 bytes each
    store.init("neighbours", mx.nd.zeros(shape))
    assert_equal(pulled(store, "neighbours", shape), np.zeros(shape))
    before = store.stats()
    store.push("neighbours", ours(store, shape))
    assert_equal(pulled(store, "neighbours", shape), total(store, shape))
    after = store.stats()

    def more(what: str, *kinds: str) -> int:
        return sum(after[what].get(kind, 0) - before[what].get(kind, 0) for kind in kinds)

    assert more("sent", "push") >= 4 * shape[0] + 48 * slices, "with a header for each"
    for what, kind in (("messages_sent", "push"), ("messages_received", "result")):
        assert 0 < more(what, kind, "batch") <= slices


CHECKS = {
    check.__name__: check
    for check in (
        it_knows_its_place,
        a_key_begins_with_the_value_of_rank_0,
        broadcast_fills_lists_and_devices,
        push_and_pull_give_the_sum_of_all_workers,
        numbers_and_strings_are_different_keys,
        lists_of_keys_take_lists_of_arrays,
        several_devices_are_summed_and_all_filled,
        lists_of_keys_take_lists_of_lists_of_devices,
        a_key_that_stands_twice_gets_the_sum_of_both,
        a_value_can_be_pulled_again_and_again,
        after_several_pushes_the_last_one_counts,
        pushpull_without_out_overwrites_what_was_pushed,
        the_gradient_may_be_the_result,
        parts_of_larger_arrays_can_be_pushed_and_filled,
        a_gradient_may_be_overwritten_at_once,
        keys_may_come_late,
        workers_may_use_keys_in_different_orders,
        any_priority_is_accepted,
        arrays_of_one_element_no_dimension_or_no_element_work,
        float64_keeps_all_its_digits,
        float16_is_summed_in_float32,
        numpy_arrays_of_mxnet_work,
        weights_in_a_layout_of_the_computation_work,
        nothing_of_a_call_is_in_a_graph_that_is_recorded,
        sparse_keys_travel_through_the_stock_store,
        a_barrier_waits_for_all_workers,
        slices_are_counted_with_their_messages,
    )
}
