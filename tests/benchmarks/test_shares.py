"""What the fullest server has of a network, beside an even share."""

from __future__ import annotations

import pytest

from benchmarks.shares import fullest


def test_a_large_key_is_shared_evenly_and_a_small_one_has_one_server() -> None:
    assert fullest([4_000_000], 16) == 1
    assert fullest([100], 16) == 16
    assert fullest([4_000_000, 4], 4) == pytest.approx(4_000_016 / 4_000_004)
