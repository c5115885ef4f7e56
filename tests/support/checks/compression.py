"""What a script sees of compression; what travels is compared in training/test_compressed.py."""
from __future__ import annotations

import warnings
from typing import Any

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext.compression import TYPES
from mxnet import autograd, gluon
from mxnet.kvstore import KVStore

from tests.support.checks.values import DEVICES

SHAPE = (40, 5)
# All elements as large as the others, which most methods send as they are.
EVEN = np.where(np.arange(200).reshape(SHAPE) % 3, 0.25, -0.25).astype(np.float32)


def open_store(kind: str, **options: Any) -> KVStore:
    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": kind, **options})
    return store


def pushed(store: KVStore, key: Any, value: np.ndarray) -> np.ndarray:
    """The sum that the store makes of a value from every worker."""
    array = mx.nd.array(value, dtype=value.dtype)
    out = mx.nd.full(value.shape, 77, dtype=value.dtype)
    store.pushpull(key, array, out=out)
    return out.asnumpy()


def every_compression_is_a_stores_name(_: KVStore) -> None:
    for kind in TYPES:
        store = mx.kv.create(kind)
        slim = kind == "slim_dp"
        assert store.type == ("dist_slim_dp" if slim else f"dist_sync_{kind}")
        assert store.is_capable("optimizer") == (slim or kind == "2bit")
        store.init(0, mx.nd.zeros(SHAPE))
        if kind == "signsgd":
            assert (pushed(store, 0, EVEN) == np.sign(EVEN)).all()
        elif kind not in ("qsgd", "dgc", "2bit", "slim_dp"):
            assert (pushed(store, 0, EVEN) == EVEN * store.num_workers).all()
        store.close()


def options_that_cannot_be_are_refused(_: KVStore) -> None:
    store = mx.kv.create("p3")
    for parameters, words in (
        ({"type": "terngrad", "clip_sigma": -1}, ["clip_sigma", "-1.0", "0 or more"]),
        ({"type": "terngrad", "clip": 1}, ["'clip'", "clip_sigma"]),
        ({"type": "terngrad", "scaler_sharing": "yes"}, ["'yes'", "true or false"]),
        ({"type": "qsgd", "bits": 9}, ["bits", "9", "2 to 8"]),
        ({"type": "qsgd", "bits": 2.5}, ["bits", "2.5", "whole"]),
        ({"type": "qsgd", "norm": "l1"}, ["'l1'", "l2 or max"]),
        ({"type": "dgc", "ratio": 1.5}, ["ratio", "1.5", "above 0 to 1"]),
        ({"type": "onebit", "bucket": -1}, ["bucket", "-1", "0 to"]),
        ({"type": "signsgd", "scale": 0}, ["scale", "0.0", "above 0"]),
        ({"type": "fp16", "exclude": "conv*"}, ["'conv*'", "patterns"]),
        ({"type": "qsgd", "non_finite": "warn"}, ["'warn'", "skip or raise"]),
    ):
        with pytest.raises(kvstore_ext.OptionError) as caught:
            store.set_gradient_compression(parameters)
        assert all(word in str(caught.value) for word in words), caught.value
    store.close()


def types_that_cannot_be_compressed_are_refused(_: KVStore) -> None:
    store = open_store("terngrad")
    with pytest.raises(kvstore_ext.ArrayMismatch, match=r"'wide'.*float64.*float32 or float16"):
        store.init("wide", mx.nd.zeros(SHAPE, dtype="float64"))
    store.close()
    store = open_store("dgc", exclude=["wide"])
    with pytest.raises(kvstore_ext.ArrayMismatch, match="its momentum, although it is in exclude"):
        store.init("wide", mx.nd.zeros(SHAPE, dtype="float64"))
    store.close()


def float16_can_be_compressed(_: KVStore) -> None:
    store = open_store("terngrad")
    store.init("half", mx.nd.zeros(SHAPE, dtype="float16"))
    half = EVEN.astype(np.float16)
    assert (pushed(store, "half", half) == half * store.num_workers).all()
    store.close()


def keys_can_be_excluded(_: KVStore) -> None:
    values = np.linspace(-1, 1, 200, dtype=np.float32).reshape(SHAPE)
    store = open_store("terngrad", exclude=[3, "*_bias"])
    for key in (3, "fc_bias", "fc_weight"):
        store.init(key, mx.nd.zeros(SHAPE))
        exact = np.allclose(pushed(store, key, values), values * store.num_workers)
        assert exact == (key != "fc_weight"), key
    assert list(store.stats()["scalers"]) == ["fc_weight"]
    store.close()


def keys_can_be_excluded_by_their_parameters_names(_: KVStore) -> None:
    store = open_store("qsgd", exclude=["*bias"])
    network = gluon.nn.Dense(4, in_units=3, prefix="last_")
    network.initialize()
    trainer = gluon.Trainer(network.collect_params(), "sgd", kvstore=store)
    with autograd.record():
        loss = network(mx.nd.ones((2, 3))).sum()
    loss.backward()
    trainer.step(2)
    compressed = [trainer._params[key].name for key in store.method.compressed_keys()]
    assert compressed == ["last_weight"]
    store.close()


def gradients_that_are_not_finite_do_not_count(_: KVStore) -> None:
    for kind in ("terngrad", "qsgd", "dgc", "onebit", "signsgd", "fp16"):
        store = open_store(kind)
        before = store.stats()["non_finite"]  # the lane is shared by all stores
        for key in ("bad", "good"):
            store.init(key, mx.nd.zeros(SHAPE))
        for value in (np.nan, np.inf):
            poisoned = EVEN.copy()
            if store.rank == store.num_workers - 1:
                poisoned[2, 3] = value
            assert (pushed(store, "bad", poisoned) == 0).all(), kind
            assert np.isfinite(pushed(store, "good", EVEN)).all(), kind
        assert store.stats()["non_finite"] == before + 2
        assert np.isfinite(pushed(store, "bad", EVEN)).all(), kind
        assert pushed(store, "bad", EVEN).any(), kind
        store.close()


def servers_do_not_update_by_gradients_that_are_not_finite(_: KVStore) -> None:
    store = open_store("terngrad")
    before = store.stats()["non_finite"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    assert any("update_on_kvstore=False" in str(warning.message) for warning in caught)
    store.init("key", mx.nd.ones(SHAPE))
    expected = 1 - 0.5 * EVEN * store.num_workers
    np.testing.assert_allclose(pushed(store, "key", EVEN), expected, 1e-5)
    poisoned = np.full(SHAPE, np.nan, np.float32)
    np.testing.assert_allclose(pushed(store, "key", poisoned), expected, 1e-5)
    assert store.stats()["non_finite"] == before + 1
    store.close()


def a_majoritys_sign_is_what_an_optimizer_gets(_: KVStore) -> None:
    store = open_store("signsgd", scale=0.25, exclude=["whole"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))  # which workers run
    for key in ("key", "whole"):
        store.init(key, mx.nd.ones(SHAPE))
    mine = EVEN * (1 + store.rank)
    for step in (1, 2):
        expected = 1 - step * 0.5 * 0.25 * np.sign(EVEN)
        assert (pushed(store, "key", mine) == expected).all()
    total = EVEN * sum(1 + rank for rank in range(store.num_workers))
    np.testing.assert_allclose(pushed(store, "whole", mine), 1 - 0.5 * total, 1e-6)
    store.close()


def unusual_gradients_give_right_sums(_: KVStore) -> None:
    tiny = np.float32(1e-40)
    for kind in ("terngrad", "qsgd", "onebit", "fp16"):
        store = open_store(kind, **({"norm": "max"} if kind == "qsgd" else {}))
        for key, value in {
            "zeros": np.zeros(SHAPE),
            "one": np.array([0.3]),
            "tiny": np.full(SHAPE, 0 if kind == "fp16" else tiny),
            "huge": np.full(SHAPE, 20_000 if kind == "fp16" else 1e37),
        }.items():
            value = value.astype(np.float32)
            store.init(key, mx.nd.zeros(value.shape))
            found, expected = pushed(store, key, value), value * store.num_workers
            np.testing.assert_allclose(found, expected, 1e-3, err_msg=f"{kind} {key}")
        store.close()


def dgc_takes_over_an_optimizers_momentum(_: KVStore) -> None:
    weight = gluon.Parameter("weight", shape=SHAPE, init="zeros")
    weight.initialize(ctx=DEVICES)
    store = mx.kv.create("dgc")
    settings = {"momentum": 0.9, "wd": 0.01}
    trainer = gluon.Trainer([weight], "sgd", settings, kvstore=store)
    with autograd.record():
        losses = [weight.data(device).sum() for device in DEVICES]
    autograd.backward(losses)
    trainer.step(1)
    assert trainer._optimizer.momentum == 0
    assert trainer._optimizer.wd == pytest.approx(0.1)
    state = store.method.of_worker(0)
    sums, velocities = np.split(state, 2)
    assert (velocities != 0).all()
    assert (sums == velocities).sum() == 199  # of 200, of which one was sent
    store.close()


def dgc_refuses_an_optimizer_whose_momentum_it_does_not_know(_: KVStore) -> None:
    store = mx.kv.create("dgc")
    with pytest.raises(kvstore_ext.KVStoreError, match="NAG"):
        store.adopt_optimizer(mx.optimizer.NAG(momentum=0.9))
    store.close()


def dgc_refuses_a_momentum_that_never_forgets(_: KVStore) -> None:
    store = mx.kv.create("dgc")
    with pytest.raises(kvstore_ext.KVStoreError, match=r"momentum is 1\.0; it must be .* below 1"):
        store.adopt_optimizer(mx.optimizer.SGD(momentum=1.0))
    store.close()


def dgc_refuses_an_optimizer_that_would_clip_its_sums(_: KVStore) -> None:
    store = mx.kv.create("dgc")
    with pytest.raises(kvstore_ext.KVStoreError, match=r"clip_gradient of 0\.5 .* clip_norm"):
        store.adopt_optimizer(mx.optimizer.SGD(clip_gradient=0.5))
    store.close()


def dgc_has_the_momentum_of_an_optimizer_that_gave_it_before(_: KVStore) -> None:
    optimizer = mx.optimizer.SGD(momentum=0.9, wd=0.01)
    for _ in range(2):
        store = mx.kv.create("dgc")
        store.adopt_optimizer(optimizer)
        assert store.method._momentum == 0.9
        assert optimizer.wd == pytest.approx(0.1)
        store.close()


def dgc_has_the_momentum_of_the_last_optimizer(_: KVStore) -> None:
    store = open_store("dgc", exclude=["*"])
    store.adopt_optimizer(mx.optimizer.SGD(momentum=0.5))
    store.init("key", mx.nd.zeros(SHAPE))
    store.adopt_optimizer(mx.optimizer.SGD())
    for _ in range(2):
        assert (pushed(store, "key", EVEN) == EVEN * store.num_workers).all()
    store.close()


def dgc_has_the_momentum_of_an_optimizer_that_was_saved(_: KVStore) -> None:
    saved = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.5, wd=0.01))
    for count in (1, 2):
        store = mx.kv.create("dgc")
        weight = gluon.Parameter("weight", shape=SHAPE, init="zeros")
        weight.initialize()
        own = {"momentum": 0.9, "wd": 0.01}
        trainer = gluon.Trainer([weight], "sgd", own, kvstore=store)
        trainer._init_kvstore()
        (updater,) = trainer._updaters
        updater.set_states(saved.get_states(True))
        assert store.method._momentum == 0.5, count
        assert updater.optimizer.wd == pytest.approx(0.02), count
        saved = updater
        store.close()


def dgc_decays_weights_as_sgd_with_momentum(_: KVStore) -> None:
    decayed = []
    for kind in ("dgc", "p3"):
        weight = gluon.Parameter("weight", shape=SHAPE, init="ones")
        weight.initialize()
        settings = {"momentum": 0.5, "wd": 0.001, "learning_rate": 0.5}
        store = mx.kv.create(kind)
        trainer = gluon.Trainer([weight], "sgd", settings, kvstore=store, update_on_kvstore=False)
        for _ in range(50):
            with autograd.record():
                loss = (weight.data() * 0).sum()
            loss.backward()
            trainer.step(1)
        decayed.append(1 - weight.data().asnumpy())
        store.close()
    np.testing.assert_allclose(decayed[0], decayed[1], rtol=0.05)


def dgc_applies_the_momentum_of_excluded_keys_too(_: KVStore) -> None:
    store = open_store("dgc", exclude=["*"])
    store.adopt_optimizer(mx.optimizer.SGD(momentum=0.5))
    store.init("key", mx.nd.zeros(SHAPE))
    for factor in (1, 1.5, 1.75):
        assert (pushed(store, "key", EVEN) == EVEN * store.num_workers * factor).all()
    store.close()


def dgc_refuses_sparse_keys_where_it_applies_momentum(_: KVStore) -> None:
    store = open_store("dgc", exclude=["*"])
    store.adopt_optimizer(mx.optimizer.SGD(momentum=0.5))
    with pytest.raises(kvstore_ext.ArrayMismatch, match=r"'rows'.*momentum.*dense"):
        store.init("rows", mx.nd.zeros(SHAPE).tostype("row_sparse"))
    store.close()


def an_optimizer_that_is_loaded_gives_its_momentum_as_well(_: KVStore) -> None:
    saved = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9)).get_states(True)
    store = mx.kv.create("dgc")
    weight = gluon.Parameter("weight", shape=SHAPE, init="zeros")
    weight.initialize()
    trainer = gluon.Trainer([weight], "sgd", kvstore=store)
    trainer._init_kvstore()
    (updater,) = trainer._updaters
    updater.set_states(saved)
    assert updater.optimizer.momentum == 0
    store.close()


def gradients_that_do_not_count_leave_nothing_behind(_: KVStore) -> None:
    store = open_store("qsgd", error_feedback=True)
    store.init("key", mx.nd.zeros(SHAPE))
    uneven = np.linspace(-1, 1, 200, dtype=np.float32).reshape(SHAPE)
    pushed(store, "key", uneven)
    before = store.method.of_worker("key")
    assert before.any()
    poisoned = np.full(SHAPE, np.nan if store.rank == 0 else 1, np.float32)
    assert (pushed(store, "key", poisoned) == 0).all()
    assert (store.method.of_worker("key") == before).all()
    store.close()


def sums_that_overflow_do_no_lasting_harm(_: KVStore) -> None:
    for kind in ("qsgd", "onebit"):
        store = open_store(kind, error_feedback=True)
        store.init("key", mx.nd.zeros(SHAPE))
        large = pushed(store, "key", np.full(SHAPE, 3e38, np.float32))
        assert np.isinf(large).all() == (store.num_workers > 1)
        pushed(store, "key", np.zeros(SHAPE, np.float32))
        assert np.isfinite(pushed(store, "key", EVEN)).all()
        store.close()


def stats_tell_what_travelled(_: KVStore) -> None:
    store = open_store("terngrad")
    store.init("key", mx.nd.zeros((1000,)))
    before = store.stats()
    even = np.linspace(-1, 1, 1000, dtype=np.float32)
    pushed(store, "key", np.random.RandomState(1).permutation(even))
    stats = store.stats()
    assert 0 < stats["sent"]["push"] - before["sent"].get("push", 0) < 4000
    assert stats["received"]["result"] > before["received"].get("result", 0)
    assert stats["scalers"] == {"key": 1.0}
    assert 0.3 < stats["zeros"] < 0.7
    zeros, looked_at = stats["zero_counts"]["key"]
    assert zeros / looked_at == pytest.approx(stats["zeros"])
    assert stats["ratio"] > 1
    for seconds in ("encode", "queue", "wire", "decode"):
        assert stats[seconds] > before[seconds]
    store.close()


def zeros_are_counted_over_time(_: KVStore) -> None:
    store = open_store("terngrad", clip_sigma=0)
    store.init("key", mx.nd.zeros((1000,)))
    assert store.stats()["zero_counts"] == {}
    counts = []
    for gradient in (np.ones(1000, np.float32), np.zeros(1000, np.float32)):
        for value in [gradient] * 16:  # of a slice of which one is looked at
            pushed(store, "key", value)
        counts.append(store.stats()["zero_counts"]["key"])
    (zeros, looked_at), (zeros_then, looked_at_then) = counts
    assert zeros == 0 < looked_at
    assert zeros_then == looked_at_then - looked_at > 0
    store.close()


SPARSE = {
    check.__name__: check for check in (dgc_refuses_sparse_keys_where_it_applies_momentum,)
}
CHECKS = {
    check.__name__: check
    for check in (
        every_compression_is_a_stores_name,
        options_that_cannot_be_are_refused,
        types_that_cannot_be_compressed_are_refused,
        float16_can_be_compressed,
        keys_can_be_excluded,
        keys_can_be_excluded_by_their_parameters_names,
        gradients_that_are_not_finite_do_not_count,
        servers_do_not_update_by_gradients_that_are_not_finite,
        a_majoritys_sign_is_what_an_optimizer_gets,
        unusual_gradients_give_right_sums,
        dgc_takes_over_an_optimizers_momentum,
        dgc_refuses_an_optimizer_whose_momentum_it_does_not_know,
        dgc_refuses_a_momentum_that_never_forgets,
        dgc_refuses_an_optimizer_that_would_clip_its_sums,
        dgc_has_the_momentum_of_an_optimizer_that_gave_it_before,
        dgc_has_the_momentum_of_the_last_optimizer,
        dgc_has_the_momentum_of_an_optimizer_that_was_saved,
        dgc_decays_weights_as_sgd_with_momentum,
        dgc_applies_the_momentum_of_excluded_keys_too,
        an_optimizer_that_is_loaded_gives_its_momentum_as_well,
        gradients_that_do_not_count_leave_nothing_behind,
        sums_that_overflow_do_no_lasting_harm,
        stats_tell_what_travelled,
        zeros_are_counted_over_time,
    )
}
