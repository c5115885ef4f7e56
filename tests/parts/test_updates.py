"""Which optimizers may update slices on the servers, and what becomes of those that may not."""

from __future__ import annotations

import contextlib
import json
import pickle
import time
import warnings
from typing import Any, NamedTuple

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext.copies import copied
from kvstore_ext.optimizer.native_updater import NativeUpdater
from kvstore_ext.optimizer.settings import SettingsWatch
from kvstore_ext.optimizer.slice_optimizer import copy_optimizer
from kvstore_ext.optimizer.updates_slices import draws_at_random, updates_slices
from kvstore_ext.protocol.state_format import with_all_rows
from kvstore_ext.store.pushes import Pushes

WHOLE = {"groupadagrad", "lamb", "lars", "nadam"}
WARM_UP = {"base_lr": 0.01, "warmup_steps": 100}  # from 0, MXNet's default


@pytest.mark.parametrize("name", sorted(mx.optimizer.Optimizer.opt_registry))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"learning_rate": 0.0},
        {"learning_rate": 1e-6},
        {"lr_scheduler": mx.lr_scheduler.PolyScheduler(1000, **WARM_UP)},
    ],
    ids=["default", "rate 0", "small rate", "warm-up"],
)
def test_who_looks_at_whole_parameters_is_found_out(name: str, options: dict[str, Any]) -> None:
    assert updates_slices(mx.optimizer.create(name, **options)) == (name not in WHOLE)


@pytest.mark.parametrize("strategy", ["linear", "power2", "sqrt", "lars"])
def test_one_optimizer_may_be_of_both_kinds(strategy: str) -> None:
    optimizer = mx.optimizer.LBSGD(warmup_strategy=strategy)
    assert updates_slices(optimizer) == (strategy != "lars")
    assert not updates_slices(mx.optimizer.LBSGD(warmup_strategy=strategy, batch_scale=4))


class Plain(mx.optimizer.Optimizer):
    """As a user writes one."""

    def create_state(self, index: Any, weight: Any) -> None:
        return None

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_count(index)
        weight[:] -= self._get_lr(index) * grad


class Lookahead(Plain):
    """Every fifth update goes half of the way, and is remembered by index."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._slow: dict[Any, Any] = {}

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        slow = self._slow.setdefault(index, weight.copy())
        super().update(index, weight, grad, state)
        if self._index_update_count[index] % 5 == 0:
            slow += 0.5 * (weight - slow)
            weight[:] = slow


class Clipping(Plain):
    """By the norm of the whole gradient, where that is large."""

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        scale = min(1.0, 100.0 / max(float(grad.norm().asscalar()), 1e-9))
        super().update(index, weight, scale * grad, state)


class Noisy(Plain):
    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        super().update(index, weight, grad + mx.nd.random.normal(shape=grad.shape), state)


class Overflowing(Plain):
    """Its numbers are not finite any more after some steps."""

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        super().update(index, weight, grad * 1e30 * weight, state)


class Remembering(Plain):
    """Has the last few gradients, in an array with a dimension more."""

    def create_state(self, index: Any, weight: Any) -> Any:
        return mx.nd.zeros((3, *weight.shape))

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        state[self._index_update_count.get(index, 0) % 3] = grad
        super().update(index, weight, state.mean(axis=0), state)


@pytest.mark.parametrize(
    ("kind", "in_slices"),
    [
        (Plain, True),
        (Lookahead, False),
        (Clipping, False),
        (Overflowing, False),
        (Remembering, False),
    ],
)
def test_a_class_of_ones_own_is_found_out_by_many_steps_or_large_gradients(
    kind: Any, in_slices: bool
) -> None:
    assert updates_slices(kind(learning_rate=0.01)) == in_slices


@pytest.mark.parametrize(
    ("kind", "draws"),
    [(mx.optimizer.SGLD, True), (Noisy, True), (mx.optimizer.Adam, False), (Clipping, False)],
)
def test_workers_that_would_draw_numbers_of_their_own_are_warned(kind: Any, draws: bool) -> None:
    assert draws_at_random(kind()) == draws
    store = mx.kv.create("terngrad")
    store._lane.workers = 2
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        store.adopt_optimizer(kind())
    assert any("draws random numbers" in str(each.message) for each in said) == draws
    store.close()


def test_workers_of_which_each_would_leave_out_stale_gradients_are_warned() -> None:
    store = mx.kv.create("terngrad")
    network = mx.gluon.nn.Dense(1, in_units=2)
    network.initialize()
    trainer = mx.gluon.Trainer(network.collect_params(), "sgd", kvstore=store)
    for step in range(2):
        with mx.autograd.record():
            loss = network(mx.nd.ones((1, 2)))
        loss.backward()
        if step == 0:
            trainer.step(1, ignore_stale_grad=True)  # alone it may
            store._lane.workers = 2
        else:
            with pytest.warns(UserWarning, match="ignore_stale_grad each worker updates only"):
                trainer.step(1, ignore_stale_grad=True)
    store.close()


def test_the_trial_is_of_no_parameter_of_the_scripts() -> None:
    """LARS has no ratio for the gammas of batch normalization, and a factor may be 0."""
    lars = mx.optimizer.create("lars", param_idx2name={0: "bn_data_gamma", 1: "conv0_weight"})
    assert not updates_slices(lars)
    frozen = mx.optimizer.SGD(param_idx2name={0: "weight"})
    frozen.set_lr_mult({"weight": 0.0})
    assert updates_slices(frozen)


def test_the_trial_leaves_an_optimizer_as_it_was() -> None:
    schedule = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.01)
    optimizer = mx.optimizer.Adam(learning_rate=0.01, lr_scheduler=schedule)
    updates_slices(optimizer)
    assert optimizer.num_update == 0
    assert optimizer._index_update_count == {}
    assert optimizer.lr_scheduler.base_lr == 0.01


def value_of(store: kvstore_ext.P3Worker) -> float:
    out = mx.nd.zeros((3,))
    store.pull(0, out=out)
    return float(out.asnumpy()[0])


@pytest.mark.parametrize("method", ["terngrad", "onebit", "fp16", "2bit", "dgc", None])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_an_optimizer_that_comes_after_sums_goes_on_from_the_last_one(
    method: str | None, momentum: float
) -> None:
    """Whose bytes are fewer than the value's, where they are encoded."""
    store = kvstore_ext.P3Worker()
    if method:
        store.set_gradient_compression({"type": method})
    ones = mx.nd.ones((3000,))
    store.init(0, ones)
    store.push(0, ones)
    summed, updated = mx.nd.zeros_like(ones), mx.nd.zeros_like(ones)
    store.pull(0, out=summed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that parameters travel as floats
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.25, momentum=momentum))
    store.push(0, ones)
    store.pull(0, out=updated)
    assert np.isfinite(updated.asnumpy()).all()
    if method != "dgc":  # which sends some of it later
        gradient = np.float32(0.5 if method == "2bit" else 1)
        np.testing.assert_array_equal(updated.asnumpy(), summed.asnumpy() - gradient / 4)
    store.close()


class Noam(mx.lr_scheduler.LRScheduler):
    """A schedule that has no rate of update 0."""

    def __call__(self, num_update: int) -> float:
        return float(self.base_lr * min(num_update**-0.5, num_update * 40**-1.5))


def test_a_schedule_may_begin_with_the_first_update() -> None:
    optimizer = mx.optimizer.Adam(lr_scheduler=Noam(base_lr=1.0))
    assert updates_slices(optimizer)
    watch = SettingsWatch(optimizer)
    optimizer.num_update = 1
    assert watch.news(optimizer, 0) == ""  # the rate that was sent
    optimizer.num_update = 2
    assert json.loads(watch.news(optimizer, 0)) == {"lr": optimizer.lr_scheduler(2)}


def test_a_rate_may_be_an_array_without_dimensions() -> None:
    optimizer = mx.optimizer.SGD(learning_rate=0.5)
    watch = SettingsWatch(optimizer)
    rate = np.where(np.bool_(True), 0.25, 0.5)
    optimizer.set_learning_rate(rate)
    assert json.loads(watch.news(optimizer, 0)) == {"lr": 0.25}
    rate[...] = 0.125
    assert json.loads(watch.news(optimizer, 0)) == {"lr": 0.125}


def test_states_of_rows_come_back_where_workers_update() -> None:
    store = kvstore_ext.P3Worker()
    store.set_optimizer(mx.optimizer.create("groupadagrad", learning_rate=0.5))
    store.init(3, mx.nd.ones((4, 3)))
    store.push(3, mx.nd.ones((4, 3)))
    states = store._updater.get_states()
    store._updater.set_states(states)
    state = store._updater.states[3]
    np.testing.assert_array_equal(state.asnumpy(), np.ones((4, 1)))
    for rows, columns in ((5, 1), (3, 5), (2, 3)):
        others = pickle.dumps({3: mx.nd.ones((rows, columns))})
        words = rf"has shape \({rows}, {columns}\); the key has shape \(4, 3\)"
        with pytest.raises(kvstore_ext.KVStoreError, match=words):
            store._updater.set_states(others)
    store.close()


@pytest.mark.parametrize("state", ["by rows and columns", "by name"])
def test_states_that_no_server_could_save_come_back_where_workers_update(state: str) -> None:
    """As an optimizer has them that looks at whole parameters."""
    made = {
        "by rows and columns": (mx.nd.ones((4, 4)), mx.nd.ones((3, 3))),
        "by name": {"mean": mx.nd.ones((4, 3)), "scale": np.float32(0.5)},
    }[state]
    store = kvstore_ext.P3Worker()
    store.set_optimizer(mx.optimizer.LAMB())
    store.init(3, mx.nd.ones((4, 3)))
    store._updater.set_states(pickle.dumps({3: made}))
    assert repr(store._updater.states[3]) == repr(made)
    store.close()


def test_sparse_keys_follow_the_schedule_where_workers_update() -> None:
    """Whatever the order in which keys are pushed."""
    schedule = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)
    optimizer = mx.optimizer.LAMB(lr_scheduler=schedule)
    updater = mx.optimizer.get_updater(optimizer)
    pushes = Pushes(decides=True)
    pushes.follow(updater)
    pushes.begin_on_workers(optimizer)
    pushes.begin_sparse(optimizer)
    for step in range(1, 5):
        pushes.sparse_settings(0)
        assert optimizer.num_update == step
        pushes.details(1, 0)
        optimizer._update_count(1)
        assert optimizer.num_update == step


def test_servers_get_plain_numbers() -> None:
    optimizer = mx.optimizer.SGD(learning_rate=np.where(np.bool_(True), 0.25, 0.5))
    assert type(copy_optimizer(optimizer).lr) is float


class Moments(NamedTuple):
    """A state as somebody's own optimizer may have it."""

    mean: mx.nd.NDArray
    count: int


def test_copies_of_states_have_their_kind() -> None:
    made = copied({0: Moments(mx.nd.ones((2,), mx.cpu_pinned(1)), 3)})[0]
    assert isinstance(made, Moments)
    assert made.mean.context == mx.cpu()
    assert made.count == 3


def test_workers_update_where_gradients_are_computed() -> None:
    """And not where the first value was, which is on the CPU with Module."""
    store = kvstore_ext.P3Worker()
    store.set_optimizer(mx.optimizer.LAMB())
    devices = [mx.cpu_pinned(0), mx.cpu_pinned(1)]
    store.init(0, mx.nd.ones((3,)))
    outs = [mx.nd.zeros((3,), device) for device in devices]
    store.push(0, [mx.nd.ones((3,), device) for device in devices])
    store.pull(0, out=outs)
    ((mean, variance),) = store._updater.states.values()
    assert mean.context == variance.context == devices[0]
    assert (outs[0].asnumpy() == outs[1].asnumpy()).all()
    assert (outs[0].asnumpy() < 1).all()
    ((saved, _),) = pickle.loads(store._updater.get_states()).values()
    assert saved.context == mx.cpu(), "who loads it may have no such device"
    np.testing.assert_array_equal(saved.asnumpy(), mean.asnumpy())
    store.close()


def test_an_optimizer_that_comes_after_a_round_that_did_not_count() -> None:
    store = kvstore_ext.P3Worker(kvstore_ext.Options(non_finite="skip"))
    store.init(0, mx.nd.ones((3,)))
    store.push(0, mx.nd.full((3,), float("nan")))
    mx.nd.waitall()
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    out = mx.nd.zeros((3,))
    store.pushpull(0, mx.nd.ones((3,)), out=out)
    with pytest.raises(mx.MXNetError, match="key 0, of which there is no value: its last round"):
        out.wait_to_read()
    with contextlib.suppress(mx.MXNetError):
        store.close()


def test_setting_an_optimizer_again_keeps_the_values_that_workers_have() -> None:
    store = kvstore_ext.P3Worker()
    store.set_optimizer(mx.optimizer.LAMB(learning_rate=1.0))
    store.init(0, mx.nd.full((3,), 10))
    store.push(0, mx.nd.full((3,), 77))
    before = value_of(store)
    assert before != 10
    store.set_optimizer(mx.optimizer.LAMB(learning_rate=1.0))
    assert value_of(store) == before
    with pytest.raises(kvstore_ext.KVStoreError, match=r"is LAMB.*changed to SGD"):
        store.set_optimizer(mx.optimizer.SGD())
    store.close()


def test_before_the_first_key_an_optimizer_may_move_to_the_servers_only() -> None:
    store = kvstore_ext.P3Worker()
    store.set_optimizer(mx.optimizer.LAMB())
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    store.init(0, mx.nd.full((3,), 10))
    store.push(0, mx.nd.ones((3,)))
    assert value_of(store) == 9
    store.close()
    store = kvstore_ext.P3Worker()
    store.set_optimizer(mx.optimizer.SGD())
    with pytest.raises(kvstore_ext.KVStoreError, match=r"is SGD.*changed to LAMB"):
        store.set_optimizer(mx.optimizer.LAMB())
    store.close()


def test_an_updater_of_the_users_updates_whole_parameters() -> None:
    store = kvstore_ext.P3Worker(kvstore_ext.Options(slice_bytes=8))
    seen = []

    def update(key: Any, gradient: mx.nd.NDArray, value: mx.nd.NDArray) -> None:
        seen.append((key, gradient.shape))
        value += gradient * 2

    for key in ("dense", "rows"):
        store.init(key, mx.nd.ones((4, 3)).tostype("row_sparse" if key == "rows" else "default"))
    store._set_updater(update)
    store.push("dense", mx.nd.ones((4, 3)))
    store.push("rows", mx.nd.ones((4, 3)).tostype("row_sparse"))
    out = mx.nd.zeros((4, 3))
    store.pull("dense", out=out)
    np.testing.assert_array_equal(out.asnumpy(), np.full((4, 3), 3))
    mx.nd.waitall()
    assert sorted(seen) == [("dense", (4, 3)), ("rows", (4, 3))]
    store.close()


def test_an_optimizer_takes_the_place_of_an_updater_and_not_the_other_way_round() -> None:
    store = kvstore_ext.P3Worker()
    store.init(0, mx.nd.full((3,), 5))
    store._set_updater(lambda key, gradient, value: value.__iadd__(gradient))
    store.push(0, mx.nd.ones((3,)))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=2))
    store.push(0, mx.nd.ones((3,)))
    assert value_of(store) == 4
    store.close()
    store = kvstore_ext.P3Worker()
    store.set_optimizer(mx.optimizer.SGD())
    store.init(0, mx.nd.zeros((3,)))
    with pytest.raises(kvstore_ext.KVStoreError, match="is SGD, which cannot be changed to a func"):
        store._set_updater(lambda key, gradient, value: None)
    store.close()


@pytest.mark.parametrize("found", ["sgd", None, {"learning_rate": 1}])
def test_what_is_no_optimizer_is_refused_with_what_is_one(found: Any) -> None:
    store = kvstore_ext.P3Worker()
    words = r"must be an Optimizer, such as mx.optimizer.create\('sgd'\)"
    with pytest.raises(kvstore_ext.KVStoreError, match=words):
        store.set_optimizer(found)
    store.close()


def test_mxnets_test_optimizer_copies_a_sparse_weight_into_its_state() -> None:
    store = kvstore_ext.P3Worker()
    store.set_optimizer(mx.optimizer.create("test", rescale_grad=2))
    rows = mx.nd.ones((4, 3)).tostype("row_sparse")
    store.init(3, rows)
    for _ in range(2):
        store.push(3, rows)
    store.row_sparse_pull(3, out=rows, row_ids=mx.nd.arange(4, dtype="int64"))
    np.testing.assert_array_equal(rows.asnumpy(), np.full((4, 3), 5))
    store.close()


def test_an_optimizer_that_fails_on_a_sparse_key_ends_the_job() -> None:
    class Fails(mx.optimizer.SGD):
        def update_multi_precision(self, index: Any, *arrays: Any) -> None:
            if 3 in np.ravel(index):
                raise ArithmeticError("as the test wants")
            super().update_multi_precision(index, *arrays)

    store = kvstore_ext.P3Worker()
    store.set_optimizer(Fails())
    store.init(3, mx.nd.ones((4, 3)).tostype("row_sparse"))
    store.push(3, mx.nd.ones((4, 3)).tostype("row_sparse"))
    mx.nd.waitall()
    deadline = time.monotonic() + 20
    while not store._worker.failure() and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(kvstore_ext.ClusterError, match=r"sparse key 3.*as the test wants"):
        store.push(3, mx.nd.ones((4, 3)).tostype("row_sparse"))
    with pytest.raises(kvstore_ext.ClusterError):
        store.close()


@pytest.mark.parametrize(
    "name", ["sgd", "adam", "adagrad", "ftrl", "rmsprop", "nag", "adadelta", "adamax", "signum"]
)
def test_a_row_sparse_value_keeps_rows_of_zeros(name: str) -> None:
    """MXNet's servers look for row 2 of a value at the place of the third that it has."""
    failures: list[str] = []
    updater = NativeUpdater(failures.append)
    updater.set_optimizer(0, mx.optimizer.create(name, learning_rate=0.5), {})
    begins = np.array([[0, 0], [1, 2], [0, 0], [3, 4]], np.float32)
    value, expected = (with_all_rows(mx.nd.array(begins)) for _ in range(2))
    gradient = mx.nd.sparse.row_sparse_array(([[1.0, -1.0]], [1]), shape=value.shape)
    alone = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.5))
    for _ in range(2):
        updater(5, gradient, value)
        alone(5, gradient, expected)
    assert failures == []
    assert value.indices.asnumpy().tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(value.asnumpy(), expected.asnumpy())


def test_float32_weights_stay_when_another_store_gets_an_optimizer() -> None:
    """Without them each step is lost, being less than half of a float16's last digit."""
    failures: list[str] = []
    updater = NativeUpdater(failures.append)

    def set_optimizer(store: int) -> None:
        optimizer = mx.optimizer.SGD(learning_rate=1e-4, multi_precision=True)
        updater.set_optimizer(store, optimizer, {})

    set_optimizer(0)
    value, ones = (mx.nd.ones((3,), dtype="float16") for _ in range(2))
    for _ in range(8):
        updater(5, ones, value)
        set_optimizer(1)
    assert failures == []
    np.testing.assert_array_equal(value.asnumpy(), np.full(3, 1 - 8e-4, dtype=np.float16))
