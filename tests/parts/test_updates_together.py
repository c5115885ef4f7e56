"""Updates of small slices that one call of MXNet's optimizer makes."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext.optimizer.slice_optimizer import SliceOptimizer

FLOAT32, FLOAT64, FLOAT16 = 0, 1, 2


@dataclass(frozen=True)
class Update:
    """As the core hands them out."""

    key: int
    slice: int = 0
    dtype: int = FLOAT32
    elements: int = 100
    step: int = 1
    settings: str = ""
    failed: bool = False

    @property
    def literal(self) -> str:
        return str(self.key)


def sizes(updates: list[Any], optimizer: mx.optimizer.Optimizer | None = None) -> list[int]:
    sliced = SliceOptimizer(optimizer or mx.optimizer.SGD(), {})
    return [len(group) for group in sliced.groups(updates)]


def test_small_slices_of_several_keys_go_together() -> None:
    assert sizes([Update(key) for key in range(16)]) == [16]
    assert sizes([]) == []


@pytest.mark.parametrize(
    "other",
    [
        {"key": 0, "slice": 1},  # MXNet counts a key's updates
        {"dtype": FLOAT64},
        {"elements": 50_000},
        {"step": 2},
        {"settings": '{"lr": 0.5}'},
        {"failed": True},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_differs_goes_alone(other: dict[str, Any]) -> None:
    assert sizes([Update(0), replace(Update(1), **other)]) == [1, 1]


def test_halves_have_weights_in_float32_beside_them_and_go_alone() -> None:
    assert sizes([Update(key, dtype=FLOAT16) for key in range(3)]) == [1, 1, 1]


class DerivedSGD(mx.optimizer.SGD):
    """A user's, which may know of one parameter at a time."""


@pytest.mark.parametrize("optimizer", [mx.optimizer.Adam(), DerivedSGD()])
def test_other_optimizers_see_one_parameter_at_a_time(optimizer: mx.optimizer.Optimizer) -> None:
    assert sizes([Update(key) for key in range(3)], optimizer) == [1, 1, 1]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_together_they_come_to_the_same_bits(momentum: float, dtype: str) -> None:
    options = {"learning_rate": 0.1, "momentum": momentum, "wd": 1e-3, "clip_gradient": 0.5}
    factors = {key: (1.0 + key, 0.5 * key) for key in range(5)}
    random = np.random.RandomState(1)
    first = [random.randn(elements).astype(dtype) for elements in (1, 7, 100, 0, 4096)]
    steps = [[random.randn(len(value)).astype(dtype) for value in first] for _ in range(4)]

    def train(together: bool) -> list[bytes]:
        sliced = SliceOptimizer(mx.optimizer.SGD(**options), factors)
        values = [mx.nd.array(value, dtype=dtype) for value in first]
        for step, gradients in enumerate(steps, 1):
            updates: Any = [Update(key, step=step) for key in range(len(first))]
            arrays = [mx.nd.array(gradient, dtype=dtype) for gradient in gradients]
            if together:
                sliced.update(updates, values, arrays)
                continue
            for each in zip(updates, values, arrays):
                sliced.update(*([part] for part in each))
        assert [sliced.state((key, 0))[1] for key in range(len(first))] == [len(steps)] * 5
        return [value.asnumpy().tobytes() for value in values]

    with mx.util.np_shape(True):  # one has no elements
        assert train(together=True) == train(together=False)
