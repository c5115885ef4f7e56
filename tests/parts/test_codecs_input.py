"""What codecs (csrc/codecs/codec.h) refuse: values that are not finite, bytes that say nothing."""
from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvstore_ext import _core

from tests.support.codec_checks import (
    DRAWS,
    METHODS,
    core_draws,
    decoded,
    gradients,
    kernels,
    named,
)
from tests.support.reference.codecs import DGC, QSGD, Method, OneBit, SignSGD, TernGrad
from tests.support.reference.formulas import FLOAT_MAX
from tests.support.reference.packing import DGC_BLOCK

KERNELS = _core.kernels()
WORKERS = 4


def core_codec(method: Method) -> _core.Codec:
    """For sums over a few workers."""
    return _core.Codec(method.specification, WORKERS)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("method", METHODS, ids=named)
def test_the_scaler_of_values_that_are_not_finite_is_not_a_number(
    method: Method, name: str
) -> None:
    codec = core_codec(method)
    with kernels(name):
        for size in (1, 16, 17, 1000):
            for place in {0, size // 2, size - 1}:
                for bad in (np.nan, np.inf, -np.inf):
                    values = np.full(size, FLOAT_MAX, np.float32)
                    assert not np.isnan(codec.scaler(values))
                    values[place] = bad
                    assert np.isnan(codec.scaler(values)), (size, place, bad)


@pytest.mark.parametrize(
    ("specification", "named_in_the_error"),
    [
        ("", "no compression ''; there are terngrad, qsgd"),
        ("3bit 0.5", "3bit"),
        ("terngrad", "terngrad.*clip_sigma is missing; it must be a number 0 or more"),
        (TernGrad().specification.replace("2.5", "much"), "clip_sigma is much; it must be"),
        (TernGrad().specification.replace("2.5", "nan"), "clip_sigma is nan"),
        (TernGrad().specification.replace("2.5", "-1"), "clip_sigma is -1"),
        (TernGrad().specification.replace("2.5", "1e39"), "clip_sigma is 1e39"),
        (TernGrad().specification.replace("2.5", "1e-50"), "clip_sigma is 1e-50"),
        (TernGrad().specification.replace("seed=0", "seed=0.5"), "a whole number 0 to 90071"),
        (TernGrad().specification + " seed=0", "seed is given twice"),
        (TernGrad().specification + " clip=1", "no option 'clip'; the options are clip_sigma,"),
        ("terngrad 2.5 1 0", "no option '2.5'"),
        ("qsgd bits=8 bucket=512 norm=l2", "qsgd.*seed is missing"),
        (QSGD(bits=1).specification, "bits is 1; it must be a whole number 2 to 8"),
        (QSGD(bits=9).specification, "bits is 9"),
        (QSGD(bucket=0).specification, "bucket is 0"),
        (QSGD().specification.replace("l2", "l1"), "norm is l1; it must be l2 or max"),
        (OneBit(bucket=0).specification, "bucket is 0"),
        (DGC(final_ratio=0).specification, "ratio is 0; it must be a number above 0 to 1"),
        (DGC(final_ratio=1.5).specification, r"ratio is 1\.5"),
        (SignSGD(scale=0).specification, "scale is 0; it must be a number above 0"),
        ("2bit", "2bit.*threshold is missing"),
        ("2bit threshold=", "threshold is ; it must be a number above 0"),
        ("2bit threshold", "threshold is ; it must be a number above 0"),
    ],
)
def test_unknown_specifications_are_refused(specification: str, named_in_the_error: str) -> None:
    for make in (
        lambda: _core.Codec(specification, WORKERS),
        lambda: _core.KeyEncoder(specification, WORKERS, 10),
    ):
        with pytest.raises(ValueError, match=named_in_the_error):
            make()


def encodings(method: Method, elements: int) -> list[tuple[str, bytes]]:
    """As a worker sends them, and, where sums are encoded, as they travel back."""
    codec = core_codec(method)
    values = gradients(elements)["few"]
    scaler = codec.scaler(values)
    found = [("add_to", codec.encode(values, scaler, core_draws(DRAWS)))]
    back = codec.encode_sum(values, scaler, core_draws(DRAWS))
    return [*found, ("decode_sum", back)] if back is not None else found


def read(codec: _core.Codec, way: str, elements: int, data: bytes) -> np.ndarray:
    """What bytes say that came one way or the other."""
    if way == "add_to":
        return decoded(codec, elements, data)
    return codec.decode_sum(elements, data)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("method", METHODS, ids=named)
def test_bytes_of_another_size_are_refused(method: Method, name: str) -> None:
    codec = core_codec(method)
    with kernels(name):
        for elements in (0, 1, 5, 161, 1000, DGC_BLOCK + 7):
            for way, data in encodings(method, elements):
                assert read(codec, way, elements, data).size == elements
                for wrong in (data[:-1], data + b"\0", data * 2, data[: len(data) // 2], b""):
                    if len(wrong) == len(data):
                        continue  # nothing is the right size of nothing
                    with pytest.raises(ValueError, match=str(len(wrong))):
                        read(codec, way, elements, wrong)


@pytest.mark.parametrize("method", [m for m in METHODS if not isinstance(m, DGC)], ids=named)
def test_bytes_of_another_number_of_elements_are_refused(method: Method) -> None:
    codec = core_codec(method)
    for way, data in encodings(method, 1000):
        for elements in (0, 900, 1100, 2 * DGC_BLOCK):
            with pytest.raises(ValueError, match=str(len(data))):
                read(codec, way, elements, data)


def sparse(counts: list[int], indices: list[int], values: list[float]) -> bytes:
    """As DGC sends them, whether that makes sense or not."""
    return struct.pack(
        f"<{len(counts)}I{len(indices)}H{len(values)}f", *counts, *indices, *values
    )


SIZE = "bytes are no"


@pytest.mark.parametrize("way", ["add_to", "decode_sum"])
@pytest.mark.parametrize(
    ("elements", "data", "words"),
    [
        (10, sparse([1], [10], [1.0]), "index 10, out of order or range"),
        (10, sparse([2], [3, 65535], [1.0, 1.0]), "index 65535, out of order or range"),
        (DGC_BLOCK + 3, sparse([0, 1], [3], [1.0]), f"index {DGC_BLOCK + 3}, out of order or"),
        (10, sparse([2], [3], [1.0]), SIZE),
        (10, sparse([0], [3], [1.0]), SIZE),
        (10, sparse([2**32 - 1], [3], [1.0]), SIZE),
        (2 * DGC_BLOCK, sparse([2**32 - 1, 2], [3], [1.0]), SIZE),  # 1 in 32 bits
        (10, sparse([11], [0] * 11, [1.0] * 11), "index 0, out of order or range"),
        (0, sparse([0], [], []), SIZE),
    ],
    ids=[
        "index is the size",
        "index beyond",
        "index beyond the last block",
        "count too large",
        "count too small",
        "count far too large",
        "counts that overflow",
        "more than there are",
        "a block of nothing",
    ],
)
def test_sparse_bytes_that_do_not_fit_the_slice_are_refused(
    elements: int, data: bytes, words: str, way: str
) -> None:
    with pytest.raises(ValueError, match=words):
        read(_core.Codec(DGC().specification, WORKERS), way, elements, data)


@pytest.mark.parametrize("name", KERNELS)
def test_bytes_that_no_ternary_digits_make_are_refused_or_taken_as_some(name: str) -> None:
    codec = core_codec(TernGrad())
    with kernels(name):
        for value in range(256):
            refused = contextlib.suppress(ValueError) if value > 242 else contextlib.nullcontext()
            with refused:
                found = decoded(codec, 165, struct.pack("<f", 0.5) + bytes([value]) * 33)
                assert set(found.tolist()) <= {-0.5, 0.0, 0.5}, value


@pytest.mark.parametrize(
    ("specification", "before", "after"),
    [("qsgd bits=8 bucket=100 norm=max seed=0 error_feedback=0", "", "x" * 100),
     ("onebit bucket=100 error_feedback=0", "", "xxxx" + "x" * 13),
     ("onebit bucket=100 error_feedback=0", "xxxx", "x" * 13)],
    ids=["norm", "mean", "mean of those below"],
)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_no_encoder_writes_are_refused(
    specification: str, before: str, after: str, number: float
) -> None:
    codec = _core.Codec(specification, WORKERS)
    ends = [text.replace("x", "\0").encode() for text in (before, after)]
    assert np.isfinite(decoded(codec, 100, ends[0] + struct.pack("<f", 1) + ends[1])).all()
    with pytest.raises(ValueError, match=f"of -?{abs(number)}"):
        decoded(codec, 100, ends[0] + struct.pack("<f", number) + ends[1])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_half_that_no_encoder_writes_is_refused(number: float) -> None:
    codec = _core.Codec("fp16 error_feedback=0", WORKERS)
    halves = np.ones(100, np.float16)
    assert (codec.decode_sum(100, halves.tobytes()) == 1).all()
    halves[70] = number
    with pytest.raises(ValueError, match="a number that is not finite"):
        codec.decode_sum(100, halves.tobytes())


@given(st.sampled_from(METHODS), st.data())
def test_no_bytes_of_the_right_size_write_beside_the_slice(
    method: Method, data: st.DataObject
) -> None:
    """Of decode_sum, whose memory is its own, the sanitizers tell (tests/fuzz/codecs.cc)."""
    elements = data.draw(st.sampled_from([1, 31, 161, 700]))
    size = len(dict(encodings(method, elements))["add_to"])
    damaged = data.draw(st.binary(min_size=size, max_size=size))
    codec = core_codec(method)
    for name in KERNELS:
        with kernels(name):
            beside = np.full(elements + 128, 7, np.float32)
            with contextlib.suppress(ValueError):
                codec.add_to(beside[64:-64], damaged)
            assert (beside[:64] == 7).all()
            assert (beside[-64:] == 7).all()


@pytest.mark.parametrize("clip_sigma", [2.5, 0.0])
def test_a_sum_over_the_largest_float_travels_as_the_largest_level(clip_sigma: float) -> None:
    codec = core_codec(TernGrad(clip_sigma))
    total = np.array([np.inf, -np.inf, FLOAT_MAX, -FLOAT_MAX, 0], np.float32)
    for name in KERNELS:
        with kernels(name):
            data = codec.encode_sum(total, 1.0, core_draws(DRAWS))
            assert data is not None
            assert codec.decode_sum(5, data).tolist() == [4, -4, 4, -4, 0]


def test_a_key_of_equal_values_is_not_clipped() -> None:
    values = np.full(100_000, 0.1, np.float32)
    assert _core.Codec(TernGrad().specification, 1).scaler(values) == np.float32(0.1)


def test_a_limit_below_the_smallest_float_does_not_clip() -> None:
    values = np.zeros(1000, np.float32)
    values[7] = np.float32(2.0**-149)
    assert _core.Codec(TernGrad(0.001).specification, 1).scaler(values) == np.float32(2.0**-149)


def test_one_bit_of_minus_zero_is_that_of_zero() -> None:
    codec = core_codec(OneBit(bucket=4, feedback=False))
    values = np.array([-0.0, 0.0, 2.0, -1.0], np.float32)
    data = codec.encode(values, 0.0, core_draws(DRAWS))
    mean = np.float32(2 / 3)
    assert decoded(codec, 4, data).tolist() == [mean, mean, mean, -1.0]
