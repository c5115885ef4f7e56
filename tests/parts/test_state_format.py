"""An optimizer's state as it travels between worker and server, piece by piece."""
from __future__ import annotations

import json
import pickle
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import KVStoreError
from kvstore_ext.optimizer.server_states import load_states
from kvstore_ext.protocol.state_format import flatten
from kvstore_ext.protocol.state_pieces import Arriving, cut, piece_of


def sent(state: Any, most: int) -> Any:
    outline = json.loads(json.dumps(flatten(state)[0]))
    arriving = Arriving(outline, most)
    for number in range(arriving.missing):
        found, data = piece_of(state, {"most": most, "piece": number})
        assert json.loads(json.dumps(found)) == outline
        assert len(data) <= most
        arriving.take(data)
    assert arriving.missing == 0
    return arriving.state()


@pytest.mark.parametrize("most", [8, 20, 27, 1 << 20])
def test_states_of_all_kinds_arrive_as_they_were(most: int) -> None:
    dense = mx.nd.array(np.arange(6).reshape(2, 3), dtype="float64")
    rows = mx.nd.array([[1, 2], [0, 0], [3, 4]], dtype="float16").tostype("row_sparse")
    no_rows = mx.nd.sparse.zeros("row_sparse", (5, 2, 2))
    got = sent((dense, None, [3, 2.5, True], (rows, no_rows)), most)
    assert got[1:3] == (None, [3, 2.5, True])
    for one, other in ((got[0], dense), (got[3][0], rows), (got[3][1], no_rows)):
        assert (one.stype, one.dtype) == (other.stype, other.dtype)
        assert one.asnumpy().tolist() == other.asnumpy().tolist()


def test_a_piece_has_no_more_bytes_than_it_may() -> None:
    outline = flatten((mx.nd.ones((3,), dtype="float16"), None, mx.nd.ones((5, 2))))[0]
    assert cut(outline, 16) == [[(0, 0, 3), (1, 0, 2)], [(1, 2, 6)], [(1, 6, 10)]]
    assert cut(outline, 1 << 20) == [[(0, 0, 3), (1, 0, 10)]]
    assert cut(None, 16) == [[]]


def test_what_cannot_be_a_state_is_named() -> None:
    with pytest.raises(KVStoreError, match="an optimizer state holds a dict; it may hold NDArr"):
        flatten((None, {"momentum": 1}))


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"x", "no optimizer states: "), (pickle.dumps([1]), "no optimizer states, but a list")],
)
def test_what_are_no_states_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(KVStoreError, match=words):
        load_states(data)


@pytest.mark.parametrize("most", [0, -1, 3, 7.5, "8", None])
def test_pieces_that_hold_no_element_are_refused(most: Any) -> None:
    for outline in (["array", "float32", [2]], ["array", "float32", [1 << 40]]):
        with pytest.raises(ValueError, match=r"^pieces of"):
            cut(outline, most)


def test_more_pieces_than_anybody_needs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^pieces of 8 bytes, of 34359738368$"):
        cut(["array", "float32", [1 << 33]], 8)
