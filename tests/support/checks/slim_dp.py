"""What a script does with the store slim_dp, on two workers; each check has stores of its own."""
from __future__ import annotations

import tempfile
import time
from typing import Any

import kvstore_ext  # noqa: F401 - before mxnet
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import ArrayMismatch, KVStoreError, OptionError
from mxnet import gluon
from mxnet.kvstore import KVStore

from tests.support.tasks.slim_dp import Bare, make_optimizer, open_store
from tests.support.tasks.training import BATCH, make_batch, make_network
from tests.support.workers.drop_in import CROSS_ENTROPY

# An update takes gradients and parameters together.
ONLY_PUSHPULL = r"pushpull\(key, gradients, out=parameters\)"


def a_worker_whose_core_differs_is_given_the_right_one(_: KVStore) -> None:
    script = Bare(open_store(p=1))
    rank = script.store.rank
    script.train(0, 5)
    mx.nd.waitall()
    codec = script.store._router.method.codecs[0]
    before = codec.cores()[1]  # another selection follows the last step, and may end at any time
    if rank == 1:
        members = before[0]
        codec.set_core(0, 1, bytes(255 - byte for byte in members[:1]) + members[1:])
        assert codec.cores()[1] != before
    script.train(5, 6)
    mx.nd.waitall()
    assert codec.cores()[1] == before
    script.store.pull(0, out=script.parameters[0])
    assert np.isfinite(script.parameters[0].asnumpy()).all()


def an_update_with_a_wrong_core_counts_in_its_own_round(_: KVStore) -> None:
    """It is pushed again with the right one."""
    store = open_store(p=1, q=2, alpha=0.5, beta=0.5)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    value = mx.nd.array(np.where(np.arange(128) < 64, 1000, 1))
    store.broadcast(0, value, out=value)
    there = mx.nd.zeros_like(value)
    for step in range(1, 8):
        if step == 5 and store.rank == 1:
            codec = store._router.method.codecs[0]
            while 2 not in codec.cores():
                time.sleep(0.01)  # the server chooses it
            codec.set_core(0, 2, b"\x00" * 8)
            codec.set_core(1, 2, b"\xff" * 8)
        store.pushpull(0, mx.nd.ones((128,)), out=value)
        store.pull(0, out=there)
        assert (there.asnumpy()[:64] == 1000 - step).all(), (step, there.asnumpy())
        assert (value.asnumpy()[:64] == 1000 - step).all(), step


def trained(shapes: dict[int, tuple[int, ...]], **options: Any) -> dict[int, mx.nd.NDArray]:
    """What eight steps by gradients of 1 make of keys that begin with zeros."""
    store = open_store(**options)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    values = {key: mx.nd.zeros(shape) for key, shape in shapes.items()}
    for key, value in values.items():
        store.broadcast(key, value, out=value)
    for _ in range(8):
        for key, value in values.items():
            store.pushpull(key, mx.nd.ones(value.shape), out=value)
    return values


def after_a_round_of_a_part() -> tuple[KVStore, mx.nd.NDArray]:
    """A store and its key 0's parameters, of which all are pushed in the next round."""
    store = open_store(p=1, q=2, alpha=0.4, beta=0.2)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    value = mx.nd.zeros((100,))
    store.broadcast(0, value, out=value)
    store.pushpull(0, mx.nd.ones((100,)), out=value)
    return store, value


def a_pull_between_rounds_begins_anew_with_the_global_model(_: KVStore) -> None:
    store, value = after_a_round_of_a_part()
    store.pull(0, out=value.as_np_ndarray())  # the same memory
    first = value.asnumpy()
    assert set(first) == {-1, 0}  # a part was communicated
    store.pushpull(0, mx.nd.ones((100,)), out=value)  # all of which is pushed
    store.pull(0, out=value)
    assert (value.asnumpy() == first - 1).all()
    store.close()


def a_pull_while_the_global_model_is_shown_changes_nothing(_: KVStore) -> None:
    store, value = after_a_round_of_a_part()
    with store.global_parameters():
        shown = value.asnumpy()
        store.pull(0, out=value)
    assert (value.asnumpy() == -1).all()  # its own again
    store.pushpull(0, mx.nd.ones((100,)), out=value)
    store.pull(0, out=value)
    assert (value.asnumpy() == shown - 1).all()
    store.close()


def an_excluded_key_has_the_mean_of_the_gradients_too(_: KVStore) -> None:
    values = trained({0: (100,), 1: (100,)}, exclude=[1])
    assert (values[1].asnumpy() == -8).all()


def an_exclusion_that_comes_after_its_key_is_refused(_: KVStore) -> None:
    store = open_store(exclude=["fc_*"])
    value = mx.nd.zeros((100,))
    store.broadcast(3, value, out=value)
    named = mx.optimizer.SGD(learning_rate=1, param_idx2name={3: "fc_bias"})
    with pytest.raises(KVStoreError, match=r"\['fc_\*'\].*key 3 .*'fc_bias'.*before init"):
        store.set_optimizer(named)
    with pytest.raises(KVStoreError, match="before init"):
        store.adopt_optimizer(named)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1, param_idx2name={3: "conv_bias"}))
    store.pushpull(3, mx.nd.ones((100,)), out=value)
    store.close()


@mx.util.use_np_shape
def a_key_without_elements_is_no_trouble(_: KVStore) -> None:
    values = trained({0: (100,), 1: (0,)})
    mx.nd.waitall()
    assert values[1].shape == (0,)
    found = values[0].asnumpy()
    assert (found == -8).sum() >= 15  # those of the core at least
    assert (found <= 0).all()


def a_key_of_one_column() -> KVStore:
    """A store with the key 0, which takes part."""
    store = open_store()
    store.set_optimizer(make_optimizer())
    store.init(0, mx.nd.zeros((100, 1)))
    return store


def a_sparse_gradient_is_refused(_: KVStore) -> None:
    with pytest.raises(ArrayMismatch, match=r"row_sparse.*exclude"):
        a_key_of_one_column().push(0, mx.nd.ones((100, 1)).tostype("row_sparse"))


def gradients_without_the_parameters_are_refused(_: KVStore) -> None:
    store = a_key_of_one_column()
    with pytest.raises(KVStoreError, match=ONLY_PUSHPULL):
        store.pushpull(0, mx.nd.zeros((100, 1)))
    with pytest.raises(KVStoreError, match=ONLY_PUSHPULL):
        store.push(0, mx.nd.zeros((100, 1)))


def two_stores_whose_selections_wait_for_each_other_go_on(_: KVStore) -> None:
    stores = [open_store(p=1, q=2) for _ in range(2)]
    values = [mx.nd.array(np.arange(100.0)) for _ in stores]
    for store, value in zip(stores, values):
        store.set_optimizer(make_optimizer())
        store.broadcast(0, value, out=value)
    for _ in range(6):
        for store, value, other in zip(stores, values, reversed(values)):
            store.pushpull(0, other * 0.1, out=value)
    mx.nd.waitall()


def a_step_without_an_optimizer_is_refused(_: KVStore) -> None:
    store = open_store()
    value = mx.nd.zeros((100,))
    store.broadcast("a", value, out=value)
    with pytest.raises(KVStoreError, match="set_optimizer"):
        store.pushpull("a", value, out=value)


def a_key_of_float64_is_refused(_: KVStore) -> None:
    store = open_store()
    store.set_optimizer(make_optimizer())
    with pytest.raises(ArrayMismatch, match=r"float64.*float32"):
        store.init("b", mx.nd.zeros((3,), dtype="float64"))


def a_key_after_the_first_round_is_refused(_: KVStore) -> None:
    store = open_store()
    store.set_optimizer(make_optimizer())
    value = mx.nd.zeros((100,))
    store.broadcast("a", value, out=value)
    store.pushpull("a", value, out=value)
    with pytest.raises(KVStoreError, match="after the first round"):
        store.init("late", value)


def a_core_of_no_element_is_refused(_: KVStore) -> None:
    store = open_store(beta=0.001, alpha=0.4)
    store.set_optimizer(make_optimizer())
    value = mx.nd.zeros((100,))
    store.broadcast(0, value, out=value)
    with pytest.raises(OptionError, match=r"beta is 0\.001"):
        store.pushpull(0, value, out=value)


def a_trainer_that_communicates_all_trains_as_with_p3(_: KVStore) -> None:
    """With alpha = beta = 1, within rounding; parameters without gradients stay out of it."""
    found = {}
    for name in ("p3", "slim_dp"):
        network = make_network()
        with network.name_scope():
            network.add(gluon.nn.BatchNorm())
        network[-1].initialize()
        slim = name == "slim_dp"
        store = open_store(alpha=1, beta=1, p=1) if slim else mx.kv.create("p3")
        made = gluon.Trainer(
            network.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store
        )
        for step in range(6):
            images, labels = make_batch(step, store.rank)
            with mx.autograd.record():
                loss = CROSS_ENTROPY(network(images), labels)
            loss.backward()
            made.step(BATCH * (1 if slim else store.num_workers))
        with store.global_parameters():
            found[name] = [p.data().asnumpy() for p in made._params if p.grad_req != "null"]
    for one, other in zip(*found.values()):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def workers_divide_by_batches_of_their_own(_: KVStore) -> None:
    """As where the last ones of an epoch are not equally large."""
    network = gluon.nn.Dense(1, use_bias=False, in_units=3)
    network.initialize(mx.init.Zero())
    store = open_store(alpha=1, beta=1, p=1)
    made = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store)
    for step in range(4):
        with mx.autograd.record():
            loss = network(mx.nd.ones((BATCH, 3)))
        loss.backward()  # the gradient is BATCH, whatever the weight
        made.step(BATCH - store.rank if step == 2 else BATCH)
    uneven = np.mean([BATCH / (BATCH - rank) for rank in range(store.num_workers)])
    with store.global_parameters():
        found = network.weight.data().asnumpy()
    np.testing.assert_allclose(found, np.full((1, 3), -0.1 * (3 + uneven)), rtol=1e-5)
    store.close()


def a_modules_workers_divide_by_batches_of_their_own(_: KVStore) -> None:
    """Though its store gets the method after its name; unless the script says by what."""
    shape = (BATCH, 3)
    product = mx.sym.broadcast_mul(mx.sym.var("data"), mx.sym.var("weight", shape=(1, 3)))
    loss = mx.sym.MakeLoss(mx.sym.sum(product))  # the gradient is BATCH
    options = {"type": "slim_dp", "alpha": 1, "beta": 1, "p": 1}
    for given, change in (({}, 1.0), ({"rescale_grad": 0.5 / BATCH}, 0.5)):
        made = mx.mod.Module(loss, label_names=None, compression_params=options)
        made.bind([("data", shape)])
        made.init_params(mx.init.One())
        made.init_optimizer("p3", "sgd", {"learning_rate": 1.0, **given})
        for _step in range(2):
            made.forward_backward(mx.io.DataBatch([mx.nd.ones(shape)]))
            made.update()
        with made._kvstore.global_parameters():
            found = made.get_params()[0]["weight"].asnumpy()
        np.testing.assert_allclose(found, np.full((1, 3), 1 - 2 * change), rtol=1e-5, atol=1e-6)


def the_store_has_a_type_of_its_own(_: KVStore) -> None:
    assert mx.kv.create("slim_dp").type == "dist_slim_dp"


def a_modules_own_parameters_come_back_after_the_global_ones(_: KVStore) -> None:
    symbol = mx.sym.SoftmaxOutput(make_network()(mx.sym.var("data")), name="softmax")
    images, labels = make_batch(0, 0)
    data = mx.io.NDArrayIter(images, labels, BATCH)
    made = mx.mod.Module(symbol)
    store = mx.kv.create("slim_dp")
    made.fit(data, kvstore=store, num_epoch=3, optimizer_params={"learning_rate": 0.2})
    arrays = dict(zip(made._param_names, made._exec_group.param_arrays))
    own = {name: each[0].asnumpy() for name, each in arrays.items()}
    made.get_params()  # as fit does before an epoch's callbacks
    with store.global_parameters():
        there = {name: each[0].asnumpy() for name, each in arrays.items()}
        told = {name: each.asnumpy() for name, each in made.get_params()[0].items()}
    assert any((own[name] != there[name]).any() for name in own)
    for name, each in arrays.items():
        np.testing.assert_array_equal(told[name], there[name])
        np.testing.assert_array_equal(each[0].asnumpy(), own[name])
        np.testing.assert_array_equal(made.get_params()[0][name].asnumpy(), own[name])


def check_uneven(first: int, **options: Any) -> None:
    """Rank `first` has four steps in an epoch, the other one eleven."""
    for mean in (False, True):
        store = open_store(**options)
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
        values = {key: mx.nd.full((90,), 10 * (key + 1)) for key in range(3)}
        for key, value in values.items():
            store.broadcast(key, value, out=value)
        for _ in range(3):
            with store.joined(mean):
                for _ in range(4 if store.rank == first else 11):
                    for key, value in values.items():
                        store.pushpull(key, mx.nd.ones_like(value), out=value)
            if store.rank == first:  # which has missed rounds
                own = [value.asnumpy() for value in values.values()]
                with store.global_parameters():
                    for value, same in zip(values.values(), own):
                        np.testing.assert_array_equal(value.asnumpy(), same)
        if store.compression.alpha == 1:  # all of it, as core or as explorer
            both, one = 3 * 4, 3 * 7  # steps
            change = 0.5 * (both + one * (1 if mean else 1 / 2))
            for key, value in values.items():
                np.testing.assert_allclose(value.asnumpy(), 10 * (key + 1) - change, 1e-5)
        store.save_optimizer_states("/dev/null")
        store.close()


def a_worker_that_has_run_out_takes_the_global_model_over(_: KVStore) -> None:
    for first in (0, 1):
        check_uneven(first, alpha=1, beta=1, p=1)
        check_uneven(first, alpha=1, beta=0, p=1)


def cores_are_chosen_while_rank_0_has_run_out(_: KVStore) -> None:
    check_uneven(0, p=1, q=1)
    check_uneven(0, p=2, q=2)
    check_uneven(0, p=1, q=3, core_delay=1, values="fp16")
    check_uneven(1, p=3, q=1, values="terngrad")


def of_one_key(alpha: float, beta: float) -> tuple[KVStore, mx.nd.NDArray]:
    """A store that exchanges after every step and chooses a core after each, and its parameters."""
    store = open_store(alpha=alpha, beta=beta, p=1, q=1)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    value = mx.nd.zeros((90,))
    store.broadcast(0, value, out=value)
    return store, value


def a_worker_may_join_before_its_first_push(_: KVStore) -> None:
    for first in (0, 1):
        store, value = of_one_key(alpha=1, beta=1)
        for steps in (0, 1):
            with store.joined():
                for _ in range(steps if store.rank == first else 3 - 2 * steps):
                    store.pushpull(0, mx.nd.ones_like(value), out=value)
        # Half of three steps, then one of both.
        np.testing.assert_allclose(value.asnumpy(), np.full(90, -1.25), 1e-5)
        store.close()


def who_joins_before_its_first_push_begins_with_the_global_model(_: KVStore) -> None:
    for first in (0, 1):
        store, value = of_one_key(alpha=0.5, beta=0.25)
        with store.joined():
            for _ in range(3 if store.rank != first else 0):
                store.pushpull(0, mx.nd.ones_like(value), out=value)
        own = value.asnumpy()
        with store.global_parameters():
            shared = value.asnumpy()
        if store.rank == first:
            np.testing.assert_array_equal(own, shared)
        assert (shared < 0).any()
        with tempfile.TemporaryDirectory() as directory:  # states have the last core
            store.save_optimizer_states(f"{directory}/states")
        store.pushpull(0, mx.nd.ones_like(value), out=value)
        value.wait_to_read()
        store.close()


def steps_are_counted_alike_after_a_join(_: KVStore) -> None:
    """Also by a schedule of the optimizer, which ends the job where it differs."""
    for p, epoch, counts in (
        (1, (4, 11), (11, 22, 33)),
        (2, (4, 11), (11, 22, 33)),
        (3, (2, 1), (2, 4, 6)),
        (3, (2, 2), (2, 4, 6)),
        (4, (1, 3), (1, 4, 5)),  # of rank 0, which has made fewer, where both have missed nothing
    ):
        store = open_store(p=p, q=1)
        schedule = mx.lr_scheduler.PolyScheduler(100, base_lr=0.5)
        optimizer = mx.optimizer.SGD(learning_rate=0.5, lr_scheduler=schedule)
        store.set_optimizer(optimizer)
        value = mx.nd.zeros((90,))
        store.broadcast(0, value, out=value)
        for expected in counts:
            with store.joined():
                for _ in range(epoch[store.rank]):
                    store.pushpull(0, mx.nd.ones_like(value), out=value)
            assert store.steps == expected, (p, epoch, store.steps)
            assert optimizer.num_update == expected
        assert store._router.rounds()[0] == 1 + store.steps // p
        store.close()


def states_that_are_saved_beside_the_global_ones_are_the_workers_own(_: KVStore) -> None:
    store = open_store(p=3, q=1)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    value = mx.nd.zeros((90,))
    store.broadcast(0, value, out=value)
    for _ in range(4):  # one more than a round
        store.pushpull(0, (1 + store.rank) * mx.nd.ones_like(value), out=value)
    own = value.asnumpy()
    with tempfile.TemporaryDirectory() as directory:
        with store.global_parameters(), store.global_parameters():
            assert (value.asnumpy() != own).all()
            store.save_optimizer_states(f"{directory}/states")
            with pytest.raises(KVStoreError, match="states are loaded within global_parameters"):
                store.load_optimizer_states(f"{directory}/states")
            with pytest.raises(KVStoreError, match="the worker joins within global_parameters"):
                store.join()
            with pytest.raises(KVStoreError, match="key 0 is pushed within global_parameters"):
                store.pushpull(0, mx.nd.ones_like(value), out=value)
        np.testing.assert_array_equal(value.asnumpy(), own)
        value[:] = 0
        store.load_optimizer_states(f"{directory}/states")
    np.testing.assert_array_equal(value.asnumpy(), own)
    store.close()


def states_are_saved_before_the_first_round(_: KVStore) -> None:
    store = open_store(p=3, q=1)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    value = mx.nd.zeros((90,))
    store.broadcast(0, value, out=value)
    store.pushpull(0, mx.nd.ones_like(value), out=value)
    with tempfile.TemporaryDirectory() as directory:
        store.save_optimizer_states(f"{directory}/states")
        saved = value.asnumpy()
        for _ in range(5):
            store.pushpull(0, mx.nd.ones_like(value), out=value)
        store.load_optimizer_states(f"{directory}/states")
    np.testing.assert_array_equal(value.asnumpy(), saved)
    store.close()


CHECKS = {
    check.__name__: check
    for check in (
        a_worker_whose_core_differs_is_given_the_right_one,
        an_update_with_a_wrong_core_counts_in_its_own_round,
        a_pull_between_rounds_begins_anew_with_the_global_model,
        a_pull_while_the_global_model_is_shown_changes_nothing,
        an_excluded_key_has_the_mean_of_the_gradients_too,
        an_exclusion_that_comes_after_its_key_is_refused,
        a_key_without_elements_is_no_trouble,
        a_sparse_gradient_is_refused,
        gradients_without_the_parameters_are_refused,
        two_stores_whose_selections_wait_for_each_other_go_on,
        a_step_without_an_optimizer_is_refused,
        a_key_of_float64_is_refused,
        a_key_after_the_first_round_is_refused,
        a_core_of_no_element_is_refused,
        a_trainer_that_communicates_all_trains_as_with_p3,
        workers_divide_by_batches_of_their_own,
        a_modules_workers_divide_by_batches_of_their_own,
        the_store_has_a_type_of_its_own,
        a_modules_own_parameters_come_back_after_the_global_ones,
        a_worker_that_has_run_out_takes_the_global_model_over,
        cores_are_chosen_while_rank_0_has_run_out,
        a_worker_may_join_before_its_first_push,
        who_joins_before_its_first_push_begins_with_the_global_model,
        steps_are_counted_alike_after_a_join,
        states_are_saved_before_the_first_round,
        states_that_are_saved_beside_the_global_ones_are_the_workers_own,
    )
}
