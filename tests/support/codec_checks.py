"""What the tests of the codecs share: methods, gradients, and the core's side of a comparison."""
from __future__ import annotations

import contextlib
from typing import Iterator

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from kvstore_ext import _core

from tests.support.reference.codecs import (
    DGC,
    QSGD,
    Half,
    Method,
    OneBit,
    SignSGD,
    TernGrad,
    TwoBit,
)
from tests.support.reference.formulas import FLOAT_MAX, Draws

METHODS: list[Method] = [
    TernGrad(),
    TernGrad(clip_sigma=0.0, seed=7),
    TernGrad(clip_sigma=1.3, sharing=False, seed=2**53),
    QSGD(),
    QSGD(bits=4, bucket=128, euclidean=False, seed=5, feedback=True),
    QSGD(bits=3, bucket=100, feedback=True),
    QSGD(bits=2, bucket=7, euclidean=False),
    OneBit(),
    OneBit(bucket=40, feedback=False),
    SignSGD(),
    SignSGD(scale=0.3, seed=11),
    Half(),
    Half(feedback=True),
    TwoBit(0.001),
    DGC(),
    DGC(final_ratio=0.01, warmup=8, stages=4, clip=1.0),
    DGC(final_ratio=0.05, masking=True),
]
SIZES = [0, 1, 5, 159, 160, 161, 1000, 65_543]
DRAWS = Draws(seed=3, sender=1, key=2**64 - 5, round=9)


def named(method: Method) -> str:
    """For the name of a test."""
    return method.specification


def gradients(elements: int) -> dict[str, np.ndarray]:
    """Of many kinds."""
    random = np.random.RandomState(elements)
    normal = random.standard_normal(elements).astype(np.float32)
    wide = np.exp2(random.uniform(-140, 120, elements))
    sizes = {
        "normal": normal * np.float32(1e-3),
        "zeros": np.zeros(elements),
        "negative zeros": -np.zeros(elements),
        "equal": np.full(elements, -0.01),
        "few": normal * (random.uniform(size=elements) < 0.02),
        "whole numbers": np.rint(3 * normal),
        "subnormal": random.randint(-50, 50, elements) * 2.0**-149,
        "largest": random.uniform(-FLOAT_MAX, FLOAT_MAX, elements),
        "wide": normal * wide,
    }
    return {kind: values.astype(np.float32) for kind, values in sizes.items()}


@st.composite
def finite_values(draw: st.DrawFn, most: int = 700) -> np.ndarray:
    """Any finite float32, anywhere in memory that float32 may lie."""
    size = draw(st.integers(0, most))
    skipped = draw(st.integers(0, 7))
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
    values: np.ndarray = draw(st_numpy.arrays(np.float32, size + skipped, elements=numbers))
    return values[skipped:]


@contextlib.contextmanager
def kernels(name: str) -> Iterator[None]:
    """These instead of the best."""
    _core.use_kernels(name)
    try:
        yield
    finally:
        _core.use_kernels(_core.kernels()[-1])


def core_draws(draws: Draws) -> _core.Draws:
    """The core's, of the same stream."""
    return _core.Draws(draws.seed, draws.sender, draws.key, draws.round)


def decoded(codec: _core.Codec, elements: int, data: bytes) -> np.ndarray:
    """What the core reads from bytes that a worker sent."""
    values = np.zeros(elements, np.float32)
    codec.add_to(values, data)
    return values


def assert_same(found: np.ndarray, expected: np.ndarray, what: str = "") -> None:
    """Bit by bit."""
    assert found.dtype == expected.dtype == np.float32
    assert found.shape == expected.shape
    different = np.flatnonzero(found.view(np.uint32) != expected.view(np.uint32))
    assert different.size == 0, (
        f"{what}: {different.size} differ, first at {different[0]}: "
        f"{found[different[0]]!r}, not {expected[different[0]]!r}"
    )


def assert_same_bytes(found: bytes | None, expected: bytes | None, what: str = "") -> None:
    """Without a difference as long as the bytes."""
    if found is None or expected is None:
        assert found is expected, what
        return
    assert len(found) == len(expected), what
    if found != expected:
        place = next(i for i, (one, other) in enumerate(zip(found, expected)) if one != other)
        raise AssertionError(f"{what}: byte {place} is {found[place]}, not {expected[place]}")
