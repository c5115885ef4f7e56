"""An optimizer's state as it travels between worker and server."""
from __future__ import annotations

import json
import pickle
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import KVStoreError
from kvstore_ext.optimizer.server_states import load_states
from kvstore_ext.protocol.state_format import arrays_from, build, flatten


def sent(state: Any) -> Any:
    outline, arrays = flatten(state)
    outline = json.loads(json.dumps(outline))
    return build(outline, arrays_from(outline, b"".join(array.tobytes() for array in arrays)))


def test_states_of_all_kinds_arrive_as_they_were() -> None:
    dense = mx.nd.array(np.arange(6).reshape(2, 3), dtype="float64")
    rows = mx.nd.ones((3, 2), dtype="float16").tostype("row_sparse")
    got = sent((dense, None, [3, 2.5, True], (rows,)))
    assert got[1:3] == (None, [3, 2.5, True])
    for one, other in ((got[0], dense), (got[3][0], rows)):
        assert (one.stype, one.dtype) == (other.stype, other.dtype)
        assert one.asnumpy().tolist() == other.asnumpy().tolist()


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
