"""Snapshots that were not written to the end, or that not all workers see."""
from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import mxnet as mx
import pytest
from kvstore_ext import KVStoreError
from kvstore_ext.errors import ClusterError
from kvstore_ext.snapshots.snapshots import Snapshots

from .snapshot_runs import SHAPE, names, open_store, restored, train


def test_what_an_end_in_the_midst_has_left_is_no_snapshot(tmp_path: Path) -> None:
    train(tmp_path, steps=1)
    half = tmp_path / "snapshot-000001-step-2"
    half.mkdir()
    (half / "worker-0.states.part").write_bytes(b"half")
    assert restored(tmp_path)[0] == 1
    train(tmp_path, steps=1)
    assert not half.exists()  # though nothing newer than it had been completed
    train(tmp_path, steps=2, keep=1)
    assert names(tmp_path) == ["snapshot-000004-step-2"]  # numbers are never used again


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store()

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    words = "step {} could not be written to .*No space left on device"
    store.push("weight", mx.nd.ones(SHAPE))
    assert store.snapshot(tmp_path, every=1)
    for step in (1, 2):
        store.push("weight", mx.nd.ones(SHAPE))
        with pytest.raises(KVStoreError, match=words.format(step)):
            store.snapshot(tmp_path, every=1)
    with pytest.raises(KVStoreError, match=words.format(3)):
        store.close()
    assert names(tmp_path) == []  # nothing of them takes room


def test_numbers_are_the_same_on_all_workers_after_one_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise no later snapshot would ever be complete."""
    store = open_store()
    flush = os.fsync

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    store.push("weight", mx.nd.ones(SHAPE))
    assert store.snapshot(tmp_path, every=1)
    store.push("weight", mx.nd.ones(SHAPE))
    store._snapshots._writing.wait()
    monkeypatch.setattr(os, "fsync", flush)
    with pytest.raises(KVStoreError, match="step 1 could not"):
        store.snapshot(tmp_path, every=1)
    store.close()
    assert names(tmp_path) == ["snapshot-000001-step-2"]


def test_the_first_worker_says_why_though_others_fail_before_it_has_told_them(
    tmp_path: Path,
) -> None:
    damaged = tmp_path / "snapshot-000000-step-4"
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{}")

    def told(_: list[float]) -> list[float]:
        raise ClusterError("worker 1: worker 0 can go on from no snapshot, as it says")

    snapshots = Snapshots(0, 2, 1.0, told, lambda: "")
    with pytest.raises(KVStoreError, match=r"is not taken: manifest\.json is no"):
        snapshots.restore(tmp_path, early=False)
    shutil.rmtree(damaged)
    with pytest.raises(ClusterError, match="as it says"):
        snapshots.restore(tmp_path, early=False)


def test_a_directory_that_the_first_worker_does_not_see(tmp_path: Path) -> None:
    """It would begin anew, and this one with it."""
    train(tmp_path, steps=1)
    snapshots = Snapshots(1, 2, 1.0, lambda numbers: [0.0] * len(numbers), lambda: "")
    words = "worker 0 finds no snapshot in .*; worker 1 finds .*step-1: all hosts must share the"
    with pytest.raises(KVStoreError, match=words):
        snapshots.restore(tmp_path, early=False)
    assert snapshots.restore(tmp_path / "empty", early=False) is None
