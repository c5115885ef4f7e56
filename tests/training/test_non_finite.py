"""Gradients with NaN or infinity that travel as they are: the option non_finite."""
from __future__ import annotations

import warnings
from typing import Any

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import _core

from tests.support.cluster import AT_ONCE, Cluster

BAD = [np.nan, np.inf, -np.inf]
DTYPES = ["float16", "float32", "float64"]


def train_with_bad_gradients() -> None:
    """Rank 1's gradient of one key is not finite in some rounds; all get the same all the time."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np
    from mxnet import autograd, gluon

    sums, trained = mx.kv.create("p3"), mx.kv.create("p3")
    trained.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    shape = (300, 70)  # several slices, on both servers
    for store in (sums, trained):
        for key in ("bad", "good"):
            store.init(key, mx.nd.ones(shape))
    workers, out = sums.num_workers, mx.nd.empty(shape)
    expected = 1.0
    for number, value in enumerate([1.0, np.nan, 1.0, np.inf]):
        gradient = np.ones(shape, np.float32)
        if sums.rank == 1:
            gradient[299, 69] = value
        bad = number % 2
        for store, skipped in ((sums, 0.0), (trained, expected)):
            for key in ("bad", "good"):
                sent = mx.nd.array(gradient if key == "bad" else np.ones(shape))
                store.pushpull(key, sent, out=out)
                wanted = workers if store is sums else 1 - 0.5 * workers * (number + 1)
                if key == "bad":
                    wanted = skipped if bad else workers
                    if store is trained and not bad:
                        wanted = expected = expected - 0.5 * workers
                np.testing.assert_array_equal(out.asnumpy(), wanted, f"{number} {key}")
    again = mx.nd.empty(shape)
    sums.pull("bad", out=again)
    assert (again.asnumpy() == 0).all()
    assert sums.stats()["non_finite"] == 4

    network = gluon.nn.Dense(1, in_units=2, use_bias=False, prefix="last_")
    network.initialize(mx.init.One())
    trainer = gluon.Trainer(
        network.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore="p3",
        update_on_kvstore=False,
    )
    with autograd.record():
        bad = float("nan") if sums.rank == 1 else 1.0
        loss = network(mx.nd.full((1, 2), bad)).sum()
    loss.backward()
    trainer.step(1)
    assert (network.weight.data().asnumpy() == 1).all()

    # What is no gradient travels as it is.
    first = mx.nd.full((3,), float("nan"))
    sums.broadcast("first", first, out=first)
    assert np.isnan(first.asnumpy()).all()
    given = mx.nd.full((3,), float("inf"))
    sums.broadcast_from(1, "given", given)
    assert np.isinf(given.asnumpy()).all()
    print("all is as it should be")


def test_rounds_do_not_count_in_a_job(cluster: Cluster) -> None:
    options = {"non_finite": "skip", "slice_bytes": 20000}
    job = cluster.run(train_with_bad_gradients, workers=3, options=options)
    assert all("all is as it should be" in worker.output for worker in job.workers)


def train_with_loss_scaling() -> None:
    """Rank 1 has gradients that are not finite in the first steps; all scale alike."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np
    from mxnet import autograd, gluon
    from mxnet.contrib import amp
    from mxnet.contrib.amp.loss_scaler import LossScaler

    for name, on_servers in (("terngrad", False), ("p3", False), ("p3", True)):
        store = mx.kv.create(name)
        network = gluon.nn.Dense(1, in_units=2, use_bias=False)
        network.initialize(mx.init.One())
        trainer = gluon.Trainer(
            network.collect_params(), "sgd", {"learning_rate": 1.0, "wd": 0.5}, kvstore=store,
            update_on_kvstore=on_servers,
        )
        # What amp.init_trainer does, without replacing operators.
        trainer._amp_loss_scaler, trainer._amp_original_scale = LossScaler(), trainer._scale
        for value, scale in ((np.inf, 65536), (np.nan, 32768), (1.0, 16384), (1.0, 16384)):
            own = value if store.rank == 1 else 1.0
            with autograd.record():
                output = network(mx.nd.full((1, 2), own)).sum()
                with amp.scale_loss(output, trainer) as loss:
                    autograd.backward(loss)
            trainer.step(1)
            case = (name, on_servers, value)
            assert trainer._amp_loss_scaler.loss_scale == scale, case
            found = network.weight.data().asnumpy()
            assert np.isfinite(found).all(), case
            assert (found == 1).all() == (not np.isfinite(value)), (case, found)
    print("all scale alike")


def test_a_skipped_round_lowers_the_loss_scale(cluster: Cluster) -> None:
    job = cluster.run(train_with_loss_scaling, options={"non_finite": "skip"})
    assert all("all scale alike" in worker.output for worker in job.workers)


def push_infinity() -> None:
    """Rank 1 does."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    store.init("key", mx.nd.zeros((5,)))
    value = mx.nd.full((5,), 1 if store.rank == 0 else float("inf"))
    store.pushpull("key", value)
    value.wait_to_read()


def test_they_can_end_the_job(cluster: Cluster) -> None:
    options = {**AT_ONCE, "non_finite": "raise"}
    job = cluster.start(push_infinity, servers=1, options=options)
    for worker in job.workers:
        assert worker.wait() == 1
        assert "worker 1: the gradient of key 'key', round 1, has values that are not finite" in (
            worker.output
        )


def pushed(bad: float, dtype: str, **options: Any) -> tuple[np.ndarray, int]:
    """What comes back of a gradient with one bad value, and how many rounds did not count."""
    store = kvstore_ext.P3Worker(kvstore_ext.Options(**options))
    try:
        store.init("key", mx.nd.zeros((9,), dtype=dtype))
        gradient = np.ones(9, dtype)
        gradient[8] = bad
        value = mx.nd.array(gradient, dtype=dtype)
        store.pushpull("key", value)
        return value.asnumpy(), store.stats()["non_finite"]
    finally:
        store.close()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", BAD)
def test_every_type_has_values_that_are_not_finite(bad: float, dtype: str) -> None:
    found, skipped = pushed(bad, dtype, non_finite="skip")
    assert (found == 0).all()
    assert skipped == 1


@pytest.mark.parametrize("bad", BAD)
def test_they_travel_unless_somebody_minds(bad: float) -> None:
    found, skipped = pushed(bad, "float32")
    np.testing.assert_array_equal(found, [1] * 8 + [bad])
    assert skipped == 0


@pytest.mark.parametrize("kernels", _core.kernels())
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_kernels_find_them_everywhere(dtype: str, kernels: str) -> None:
    largest = np.finfo(dtype).max
    _core.use_kernels(kernels)
    try:
        for size in (0, 1, 7, 64, 1000):
            values = np.full(size, -largest, dtype)
            assert _core.all_finite(values)
            for place in {0, size // 2, size - 1} & set(range(size)):
                for bad in BAD:
                    values[place] = bad
                    assert not _core.all_finite(values), (place, bad)
                values[place] = np.finfo(dtype).smallest_subnormal
            assert _core.all_finite(values)
    finally:
        _core.use_kernels("")


def test_what_it_may_be() -> None:
    with pytest.raises(kvstore_ext.OptionError, match="'stop'; it must be keep or skip or raise"):
        kvstore_ext.Options(non_finite="stop")
    with pytest.raises(kvstore_ext.OptionError, match="non_finite is True; it must be a word"):
        kvstore_ext.Options(non_finite=True)


def test_it_is_also_a_compressions(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the environment it holds for both, and a method that has none is not asked."""
    monkeypatch.setenv("KVSTORE_EXT_OPTIONS", '{"non_finite": "raise"}')
    for name in ("terngrad", "slim_dp"):
        store = mx.kv.create(name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.init("key", mx.nd.zeros((3,)))
        if name == "terngrad":
            assert store.compression.non_finite == "raise"
        store.close()
    store = mx.kv.create("p3")
    store.init("key", mx.nd.zeros((3,)))
    store.push("key", mx.nd.array([float("nan")] * 3))
    with pytest.raises(mx.MXNetError, match="key 'key', round 1, has values that are not finite"):
        mx.nd.waitall()
    with pytest.raises(kvstore_ext.ClusterError, match="has values that are not finite"):
        store.close()
