"""Files that another version has written are refused with both formats, its own and ours."""
from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import kvstore_ext
import mxnet as mx
import pytest
from kvstore_ext import KVStoreError

ENTRY = "kvstore_ext: carried over"
OURS = f"this is kvstore_ext {kvstore_ext.__version__}, which reads format"


def open_store(name: str) -> Any:
    store = mx.kv.create(name)
    store.set_optimizer(mx.optimizer.SGD())
    store.init("weight", mx.nd.zeros((300,)))
    return store


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"method": "terngrad", "rank": 0}, "format 0, of kvstore_ext before 0.1.0"),
        ({"format": 2, "version": "0.9.0"}, "format 2, of kvstore_ext 0.9.0"),
    ],
)
@pytest.mark.parametrize("name", ["p3", "terngrad", "slim_dp"])
def test_states_of_another_format_are_refused(
    tmp_path: Path, name: str, entry: dict[str, Any], found: str
) -> None:
    file = tmp_path / "states"
    file.write_bytes(pickle.dumps({ENTRY: entry}))
    store = open_store(name)
    words = re.escape(f"the states have {found}; {OURS} 1")
    with pytest.raises(KVStoreError, match=words):
        store.load_optimizer_states(str(file))
    store.close()


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        ({"format": 1, "version": "0.0.9"}, "format 1, of kvstore_ext 0.0.9"),
        ({"format": 0}, "format 0, of kvstore_ext before 0.1.0"),
        ({"format": 3, "version": "0.9.0", "new": []}, "format 3, of kvstore_ext 0.9.0"),
    ],
)
def test_a_snapshot_of_another_format_is_refused(
    tmp_path: Path, manifest: dict[str, Any], found: str
) -> None:
    snapshot = tmp_path / "snapshot-000000-step-1"
    snapshot.mkdir()
    seal = {"sha256 of all other fields": "of another kind"}
    (snapshot / "manifest.json").write_text(json.dumps({**manifest, **seal}))
    store = open_store("p3")
    words = re.escape(f"{snapshot} is not taken: it has {found}; {OURS} 2")
    with pytest.raises(KVStoreError, match=words):
        store.restore(tmp_path)
    store.close()
