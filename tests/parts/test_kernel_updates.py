"""Updates that the core makes by itself have the bits of MXNet's optimizers."""
from __future__ import annotations

from typing import Any

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import _core
from kvstore_ext.optimizer import kernel_updates

from tests.support.codec_checks import kernels

STEPS = 4
SIZES = (1, 7, 8, 33, 5000)
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {}),
    ("sgd", {"wd": 1e-3, "rescale_grad": 1 / 3}),
    ("sgd", {"momentum": 0.9, "wd": 1.3e-4, "rescale_grad": 1 / 3}),
    ("sgd", {"momentum": 0.9, "wd": 1e-3, "clip_gradient": 0.5}),
    ("sgd", {"clip_gradient": 0.5, "rescale_grad": 3.1e-5}),
    ("adam", {}),
    ("adam", {"wd": 1e-3, "rescale_grad": 1.3, "epsilon": 3.3e-7}),
    ("adam", {"clip_gradient": 0.5, "beta1": 0.87, "beta2": 0.97, "learning_rate": 0.0371}),
]


def values_of_all_kinds(random: np.random.RandomState, size: int) -> np.ndarray:
    """Most of them near one, others very large, very small, infinite or no numbers."""
    values = random.standard_normal(size) * 10.0 ** random.choice([-3, 0, 2], size)
    if size > 100:
        values[:8] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-42, 3e38, -1e-45]
        random.shuffle(values)
    return values.astype(np.float32)


def bits(values: np.ndarray) -> np.ndarray:
    """With one pattern for all that are no numbers."""
    whole = values.view({2: np.int16, 4: np.int32}[values.itemsize])
    return np.where(np.isnan(values), whole.dtype.type(-1), whole)


def by_mxnet(
    optimizer: mx.optimizer.Optimizer, first: np.ndarray, gradients: list[np.ndarray]
) -> np.ndarray:
    """What one process makes of a value; in float32 where it is of float16, as MXNet's servers."""
    updater = mx.optimizer.get_updater(optimizer)
    master = mx.nd.array(first, dtype=np.float32)
    for gradient in gradients:
        updater("key", mx.nd.array(gradient, dtype=np.float32), master)
    found: np.ndarray = master.astype(first.dtype).asnumpy()
    return found


def refuse(*_: Any) -> None:
    raise AssertionError("MXNet was called")


@pytest.mark.parametrize("name", _core.kernels())
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_steps_have_mxnets_bits(
    kind: str, options: dict[str, Any], dtype: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.RandomState(3)
    optimizer = mx.optimizer.create(kind, multi_precision=dtype == np.float16, **options)
    with kernels(name), np.errstate(all="ignore"):
        store = kvstore_ext.P3Worker()
        store.set_optimizer(optimizer)
        monkeypatch.setattr(type(optimizer), "update_multi_precision", refuse)
        monkeypatch.setattr(type(optimizer), "update", refuse)
        firsts = [random.standard_normal(size).astype(dtype) for size in SIZES]
        pushed = [
            [values_of_all_kinds(random, size).astype(dtype) for _ in range(STEPS)]
            for size in SIZES
        ]
        found = []
        for key, (first, gradients) in enumerate(zip(firsts, pushed)):
            value = mx.nd.array(first, dtype=dtype)
            store.init(key, value)
            for gradient in gradients:
                store.pushpull(key, mx.nd.array(gradient, dtype=dtype), out=value)
            found.append(value.asnumpy())
        monkeypatch.undo()
        store.close()
        for first, gradients, value in zip(firsts, pushed, found):
            expected = by_mxnet(mx.optimizer.create(kind, **options), first, gradients)
            np.testing.assert_array_equal(bits(value), bits(expected))


@pytest.mark.parametrize("exponent", [-9, -5, -1, 0, 3])
def test_numbers_are_read_as_mxnet_reads_them(exponent: int) -> None:
    random = np.random.RandomState(exponent + 10)
    one, zero = mx.nd.ones(1), mx.nd.zeros(1)
    for value in random.uniform(1, 10, 50) * 10.0**exponent:
        # A step of a gradient of one from zero is the rate.
        moved = mx.nd.sgd_update(zero, one, lr=-value, wd=0).asscalar()
        assert kernel_updates._as_read(float(value)) == moved


@pytest.mark.parametrize("value", np.random.RandomState(5).uniform(0, 1e-3, 40).tolist())
def test_lists_of_numbers_are_read_exactly(value: float) -> None:
    moved = mx.nd.zeros(1)
    mx.nd.multi_sgd_update(
        moved, mx.nd.ones(1), out=[moved], num_weights=1, lrs=(-value,), wds=(0.0,)
    )
    assert moved.asscalar() == np.float32(value)


class DerivedSGD(mx.optimizer.SGD):
    """A user's own."""


@pytest.mark.parametrize("optimizer", [DerivedSGD(), mx.optimizer.NAG(), mx.optimizer.Adamax()])
def test_others_are_mxnets(optimizer: mx.optimizer.Optimizer) -> None:
    assert kernel_updates.step_by_kernel(optimizer) is None
