"""Snapshots that are damaged, another run's, or cannot be written: nothing of them is taken."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any, Callable

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import KVStoreError
from kvstore_ext.compression import differing
from kvstore_ext.snapshots import Part
from kvstore_ext.snapshots.snapshots import Snapshots

from tests.support.processes import LIMIT

from .snapshot_runs import SHAPE, names, open_store, restored, train, value


class Place(Part):
    """Where a script is in its data."""

    name = "place"

    def __init__(self, place: int) -> None:
        self.place = place

    def own(self, rank: int) -> int:
        return self.place

    def put_back(self, shared: Any, own: int, is_own: bool) -> None:
        self.place = own


class Moves(Part):
    """A script that goes to another directory while a snapshot is taken."""

    name = "moves"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def own(self, rank: int) -> None:
        os.chdir(self.directory)


def test_a_script_may_change_its_directory_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    store = open_store()
    store.include_in_snapshots(Moves(elsewhere))
    store.push("weight", mx.nd.ones(SHAPE))
    assert store.snapshot("snapshots", every=1)
    store.close()
    assert names(tmp_path / "snapshots") == ["snapshot-000000-step-1"]
    assert not list(elsewhere.iterdir())


def test_where_there_is_no_snapshot_there_is_no_step(tmp_path: Path) -> None:
    for directory in (tmp_path / "none", tmp_path):
        assert restored(directory)[0] is None


def test_the_newest_stay_and_their_seals_are_those_of_sha256sum(tmp_path: Path) -> None:
    values = train(tmp_path, steps=7, every=2, keep=2)
    assert names(tmp_path) == ["snapshot-000001-step-4", "snapshot-000002-step-6"]
    step, found = restored(tmp_path)
    assert step == 6
    np.testing.assert_array_equal(found, values[6])
    newest = tmp_path / "snapshot-000002-step-6"
    seals = [path.name for path in newest.glob("*.sha256")]
    assert len(seals) == 2
    subprocess.run(["sha256sum", "--quiet", "-c", *seals], cwd=newest, check=True)


def test_a_run_with_numpys_shapes_goes_on(tmp_path: Path) -> None:
    with mx.util.np_shape(True):  # as npx.set_np has them, of this thread
        values = train(tmp_path, steps=1)
        step, found = restored(tmp_path)
    assert step == 1
    np.testing.assert_array_equal(found, values[1])


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def renumber(file: Path) -> None:
    text = file.read_text()
    assert '"step": 2' in text
    file.write_text(text.replace('"step": 2', '"step": 7'))


def reformat(file: Path) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 99}))


DAMAGES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "shorter": ("shared.states", cut, r"has \d+ bytes; the manifest says \d+"),
    "other": ("shared.states", flip, r"has SHA-256 [0-9a-f]{64}; the manifest says [0-9a-f]{64}"),
    "own": ("worker-0.states", flip, r"worker-0.states has SHA-256 .* manifest says"),
    "gone": ("worker-0.states", os.unlink, "cannot be read: No such file"),
    "no manifest": ("manifest.json", cut, "is no manifest"),
    "changed": ("manifest.json", renumber, r"has SHA-256 [0-9a-f]{64}; it says [0-9a-f]{64}"),
    "format": ("manifest.json", reformat, "format 99.*reads format 2"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_of_a_damaged_snapshot_the_one_before_is_taken(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], damage: str
) -> None:
    file, do, words = DAMAGES[damage]
    values = train(tmp_path, steps=2)
    newest, before = (tmp_path / f"snapshot-00000{n}-step-{n + 1}" for n in (1, 0))
    do(newest / file)
    step, found = restored(tmp_path)
    assert step == 1
    np.testing.assert_array_equal(found, values[1])
    assert re.search(rf"{newest} is not taken: .*{words}.*before it is", capfd.readouterr().err)
    do(before / file) if do is not renumber else cut(before / file)
    with pytest.raises(KVStoreError, match=rf"{newest} is not taken.*{before} is not taken"):
        restored(tmp_path)


def test_a_damaged_one_is_none_of_those_that_count(tmp_path: Path) -> None:
    train(tmp_path, steps=2)
    cut(tmp_path / "snapshot-000001-step-2" / "shared.states")
    store = open_store()
    assert store.restore(tmp_path) == 1
    store.push("weight", mx.nd.ones(SHAPE))
    assert store.snapshot(tmp_path, every=1, keep=2)
    store.close()
    numbers = [int(name.split("-")[1]) for name in names(tmp_path)]
    assert numbers == [0, 1, 2]  # 1 is the damaged one


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"shape": (2, 2)}, r"\(3, 50\), float32; this run has of shape \(2, 2\), float32"),
        ({"optimizer": "sgd"}, "Adam on the servers; this run has SGD on the servers"),
        ({"optimizer": "lamb"}, "Adam on the servers; this run has LAMB on the workers"),
        ({"type": "terngrad"}, "it was taken with no compression; this run has terngrad$"),
    ],
)
def test_another_run_is_told_with_both_values(
    tmp_path: Path, other: dict[str, Any], words: str
) -> None:
    train(tmp_path, steps=1)
    store = open_store(**other)
    with pytest.raises(KVStoreError, match=words):
        store.restore(tmp_path)
    store.push("weight", mx.nd.ones(other.get("shape", SHAPE)))  # it goes on without
    store.close()


def trainer_of(**how: Any) -> tuple[mx.gluon.Trainer, Any, Any]:
    """A Trainer, whose store has no key and no compression before its first step, and that store.
    """
    network = mx.gluon.nn.Dense(3, in_units=5)
    network.initialize()
    store = mx.kv.create("p3")
    trainer = mx.gluon.Trainer(network.collect_params(), "sgd", kvstore=store, **how)
    return trainer, network, store


def test_a_trainers_snapshot_of_another_compression_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    compressed = {"compression_params": {"type": "terngrad"}}
    for how in ({}, compressed):
        trainer, network, store = trainer_of(**how)
        with mx.autograd.record():
            loss = network(mx.nd.ones((1, 5)))
        loss.backward()
        trainer.step(1)
        assert store.snapshot(tmp_path, every=1)
        store.close()
    older, newest = (tmp_path / f"snapshot-00000{number}-step-1" for number in (0, 1))
    refusal = f"{newest} is not taken: it was taken with terngrad; this run has no compression"
    trainer, network, store = trainer_of()
    assert store.restore(tmp_path) == 1
    assert f"kvstore_ext: snapshot {refusal}; the one before it is\n" in capfd.readouterr().err
    store.close()
    shutil.rmtree(older)
    trainer, network, store = trainer_of()
    with pytest.raises(KVStoreError, match=f"^snapshot {refusal}$"):
        store.restore(tmp_path)
    store.close()


def test_a_trainers_snapshot_of_parameters_in_another_order_is_refused(tmp_path: Path) -> None:
    """MXNet calls layers dense0, dense1 and so on in a process, and Trainer sorts them by names."""

    def run(
        made_before: int, count: int = 12, steps: int = 1
    ) -> tuple[mx.gluon.nn.Sequential, Any]:
        with mx.name.NameManager():
            layers = [mx.gluon.nn.Dense(2, in_units=2) for _ in range(made_before + count)]
        network = mx.gluon.nn.Sequential()
        network.add(*layers[made_before:])
        network.initialize(mx.init.Xavier())
        store = mx.kv.create("p3")
        trainer = mx.gluon.Trainer(network.collect_params(), "sgd", kvstore=store)
        for _ in range(steps):
            with mx.autograd.record():
                loss = network(mx.nd.ones((1, 2)))
            loss.backward()
            trainer.step(1)
        return network, store

    network, store = run(0)
    assert store.snapshot(tmp_path, every=1)
    saved = [parameter.data().asnumpy() for parameter in network.collect_params().values()]
    store.close()
    network, store = run(12)
    with pytest.raises(KVStoreError, match="numbered the network's parameters in another order"):
        store.restore(tmp_path)
    store.close()
    _, store = run(0, count=13, steps=0)
    with pytest.raises(KVStoreError, match="it has parameter 24 not at all"):
        store.restore(tmp_path)
    store.close()
    network, store = run(0)
    assert store.restore(tmp_path) == 1
    for parameter, before in zip(network.collect_params().values(), saved):
        np.testing.assert_array_equal(parameter.data().asnumpy(), before)
    store.close()


def test_two_of_one_type_are_told_by_the_options_that_differ() -> None:
    one = "TernGrad(exclude=(), clip_sigma=2.5)"
    assert differing(one, one.replace("2.5", "3.0")) == (
        "terngrad with clip_sigma 2.5",
        "terngrad with clip_sigma 3.0",
    )
    assert differing("no repr at all", "None") == ("no repr at all", "no compression")


def test_a_run_that_lacks_a_part_is_told(tmp_path: Path) -> None:
    store = open_store()
    store.include_in_snapshots(Place(5))
    store.push("weight", mx.nd.ones(SHAPE))
    assert store.snapshot(tmp_path, every=1)
    store.close()
    store = open_store()
    with pytest.raises(KVStoreError, match="it has the part 'place'; this run has 'random states"):
        store.restore(tmp_path)
    store.close()


def test_training_goes_on_while_a_snapshot_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, writes = threading.Event(), threading.Event()
    flush = os.fsync

    def flush_slowly(descriptor: int) -> None:
        writes.set()
        assert disk.wait(LIMIT)
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", flush_slowly)
    store = open_store()
    store.push("weight", mx.nd.ones(SHAPE))
    first = value(store)
    assert store.snapshot(tmp_path, every=1)
    assert writes.wait(LIMIT)
    for _ in range(3):
        store.push("weight", mx.nd.ones(SHAPE))
        second = value(store)
        assert not store.snapshot(tmp_path, every=100)
    assert not list(tmp_path.glob("*/manifest.json"))
    disk.set()
    store.close()
    assert (first != second).all()
    step, found = restored(tmp_path)
    assert step == 1
    np.testing.assert_array_equal(found, first)  # which the later steps have not changed


def test_mistakes_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = open_store()
    store.push("weight", mx.nd.ones(SHAPE))
    for wrong, words in (
        ({"every": 0}, "every is 0; it must be a whole number, 1 or more"),
        ({"every": True}, "every is True; it must be a whole number, 1 or more"),
        ({"keep": 1.5}, "keep is 1.5"),
    ):
        with pytest.raises(KVStoreError, match=words):
            store.snapshot(tmp_path, **wrong)
    with pytest.raises(KVStoreError, match=r"cannot be written to .*file"):
        store.snapshot(tmp_path / "file", every=1)
    words = r"within store\.joined.*call it after the block"
    with pytest.raises(KVStoreError, match=words), store.joined():
        store.snapshot(tmp_path / "uneven")
    store.close()
    store = mx.kv.create("p3")
    train(tmp_path / "good", steps=1)
    with pytest.raises(KVStoreError, match="too early: no key has its first value"):
        store.restore(tmp_path / "good")
    store.close()


def test_whole_numbers_of_numpys_are_taken(tmp_path: Path) -> None:
    store = open_store()
    for step in range(1, 5):
        store.push("weight", mx.nd.ones(SHAPE))
        taken = store.snapshot(tmp_path, every=np.int64(2), keep=np.int32(1))
        assert taken == (step % 2 == 0)
    store.close()
    assert names(tmp_path) == ["snapshot-000001-step-4"]


def test_row_sparse_keys_that_workers_update_are_refused(tmp_path: Path) -> None:
    store = open_store(optimizer="lamb")
    store.init("rows", mx.nd.zeros((4, 2)).tostype("row_sparse"))
    store.push("weight", mx.nd.ones(SHAPE))
    with pytest.raises(KVStoreError, match="'rows' has row-sparse arrays of float32; a snapshot"):
        store.snapshot(tmp_path, every=1)
    store.close()


def test_a_last_snapshot_goes_to_every_directory(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    store = open_store()
    store.push("weight", mx.nd.ones(SHAPE))
    assert store.snapshot(one, every=1)
    assert not store.snapshot(other, every=2)
    for directory in (one, other):
        store._snapshots.take_now(directory, 2)
        assert names(directory) == ["snapshot-000000-step-1"]
    store.close()


def test_parts_have_names_of_their_own() -> None:
    store = open_store()
    place = Place(5)
    store.include_in_snapshots(place)
    store.include_in_snapshots(place)
    with pytest.raises(KVStoreError, match="have a part 'place' already, a Place"):
        store.include_in_snapshots(Place(6))
    with pytest.raises(KVStoreError, match="needs a name; Part has none"):
        store.include_in_snapshots(Part())
    store.close()


def test_a_script_has_its_own_part_and_steps_count_on(tmp_path: Path) -> None:
    for first, place in ((0, 5), (3, 6)):
        store = open_store()
        part = Place(place)
        store.include_in_snapshots(part)
        assert store.restore(tmp_path) == (first or None)
        assert part.place == 5
        for step in range(first + 1, first + 4):
            store.push("weight", mx.nd.ones(SHAPE))
            assert store.snapshot(tmp_path, every=3) == (step % 3 == 0)
        store.close()
    assert names(tmp_path) == ["snapshot-000000-step-3", "snapshot-000001-step-6"]


class Counting(Place):
    """One that knows how many steps there were."""

    steps = 1


def test_all_workers_hear_that_rank_0_cannot_write(tmp_path: Path) -> None:
    told = []

    def agree(numbers: list[float]) -> list[float]:
        told.append(numbers)
        return [-1.0]

    occupied = tmp_path / "file"
    occupied.touch()
    for rank, error in ((0, "snapshots cannot be written to .*file"), (1, "worker 0 cannot write")):
        snapshots = Snapshots(rank, 2, 10, agree, failure=lambda: "")
        snapshots.include(Counting(1))
        with pytest.raises(KVStoreError, match=error):
            snapshots.take(occupied, every=1, keep=1)
        assert told == [[-1.0]] * (1 + rank)
        assert snapshots.taken == 0
