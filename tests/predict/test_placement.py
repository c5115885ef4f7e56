"""Keys lie where the core, and MXNet, would have them."""
from __future__ import annotations

import pytest
from kvstore_ext import _core
from kvstore_ext.predict import placement
from kvstore_ext.predict.codecs import CODECS


@pytest.mark.parametrize("element_bytes", [4.0, 0.2, 0.02])
@pytest.mark.parametrize("servers", [1, 4, 17, 32])
def test_the_lane_places_as_the_core(element_bytes, servers):
    sizes = [1, 64, 8_191, 8_192, 16_383, 16_384, 49_999, 50_001, 1_000_000, 2_359_296, 16_777_216]
    placed = placement.lane(sizes, servers, element_bytes)
    for key, size in enumerate(sizes):
        core = _core.slice_key(key, size, element_bytes, placement.SLICE_BYTES, servers)
        assert placed[key] == [(server, length) for _, _, length, server in core]


def test_stock_stores_deal_large_keys():
    assert placement.stock([10, 1_000_001], 4) == [
        [(0, 10)], [(0, 250_000), (1, 250_000), (2, 250_001), (3, 250_000)]
    ]  # fmt: skip
    assert placement.stock_p3([10, 100_000], 2) == [
        [(0, 10)], [(1, 40_000), (0, 40_000), (1, 20_000)]
    ]  # fmt: skip


def test_loads_add_up():
    sizes = [64, 2_359_296, 1_000]
    loads = placement.loads(placement.lane(sizes, 8), 8)
    assert sum(loads.values()) == sum(sizes)


@pytest.mark.parametrize(
    ("name", "specification"),
    [
        ("terngrad", "terngrad clip_sigma=2.5 scaler_sharing=1 seed=0"),
        ("qsgd", "qsgd bits=8 bucket=512 norm=l2 seed=0 error_feedback=0"),
        ("onebit", "onebit bucket=512 error_feedback=0"),
        ("signsgd", "signsgd scale=1 seed=0"),
        ("fp16", "fp16 error_feedback=0"),
        ("2bit", "2bit threshold=0.5"),
    ],
)
def test_codecs_have_the_bytes_that_they_encode(name, specification):
    import numpy as np

    values = np.random.default_rng(0).standard_normal(102_400).astype(np.float32)
    codec = _core.Codec(specification, 4)
    scaler, draws = codec.scaler(values), _core.Draws(0, 0, 0, 1)
    encoded = codec.encode(values, scaler, draws)
    assert len(encoded) / values.size == pytest.approx(CODECS[name].there, rel=0.01)
    total = np.zeros_like(values)
    codec.add_to(total, encoded)
    back = codec.encode_sum(total, scaler, draws)
    size = len(back) if back else total.nbytes
    assert size / values.size == pytest.approx(CODECS[name].back(4), rel=0.04)
