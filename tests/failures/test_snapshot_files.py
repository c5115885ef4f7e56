"""Snapshots that were not written to the end, or that not all workers see."""
from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import KVStoreError
from kvstore_ext.errors import ClusterError
from kvstore_ext.snapshots import manifest
from kvstore_ext.snapshots.folder import entry
from kvstore_ext.snapshots.snapshots import Snapshots
from kvstore_ext.snapshots.writing import Contents, Writing
from mxnet import gluon

from tests.support.processes import LIMIT

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


def test_a_file_system_that_cannot_flush_directories_has_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def only_files(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", only_files)
    train(tmp_path, steps=1)
    assert restored(tmp_path)[0] == 1


def test_a_disk_that_hangs_keeps_a_failed_job_for_a_while_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, failures = threading.Event(), [""]
    monkeypatch.setattr(os, "fsync", lambda _: disk.wait(LIMIT))
    writing = Writing(0.2, lambda: failures[-1])
    writing.begin(Contents(entry(tmp_path, 0, 1), {"worker-1.states": 1}, None, keep=1))
    failures.append("worker 0 is lost")
    with pytest.raises(KVStoreError, match=r"not written 0\.2 s after the job has failed"):
        writing.join()
    disk.set()
    writing._thread.join(LIMIT)


def test_one_is_whole_although_an_older_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def of_another_account(_: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(manifest, "remove_manifest", of_another_account)
    train(tmp_path, steps=2, keep=1)
    assert names(tmp_path) == ["snapshot-000000-step-1", "snapshot-000001-step-2"]
    assert restored(tmp_path)[0] == 2
    assert f"older snapshots stay in {tmp_path}: " in capfd.readouterr().err


def test_a_last_one_is_taken_although_one_before_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = open_store()
    store.push("weight", mx.nd.ones(SHAPE))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", no_space)
        assert store.snapshot(tmp_path, every=1)
        store._snapshots._writing.wait()
    store.push("weight", mx.nd.ones(SHAPE))
    store._snapshots.take_now(tmp_path, keep=2)
    store.close()
    assert names(tmp_path) == ["snapshot-000001-step-2"]
    assert "step 1 could not be written" in capfd.readouterr().err


def test_a_schedule_that_cannot_be_saved_is_named(tmp_path: Path) -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD(lr_scheduler=Fading()))
    store.init("weight", mx.nd.zeros(SHAPE))
    store.push("weight", mx.nd.ones(SHAPE))
    with pytest.raises(KVStoreError, match=r"optimizer SGD cannot be saved: .*schedule"):
        store.snapshot(tmp_path, every=1)
    store.close()


class Fading(mx.lr_scheduler.LRScheduler):
    """A schedule that holds a function, as one of a script may."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = lambda step: 1 / (1 + step)

    def __call__(self, num_update: int) -> float:
        return self.rate(num_update)


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


def test_each_directory_has_steps_of_its_own(tmp_path: Path) -> None:
    store = open_store()
    for step in range(1, 7):
        store.push("weight", mx.nd.ones(SHAPE))
        assert store.snapshot(tmp_path / "recent", every=1)
        assert store.snapshot(tmp_path / "milestones", every=3) == (step % 3 == 0)
    store.close()
    assert len(names(tmp_path / "milestones")) == 2


def trainer_on(
    devices: list[mx.Context], frozen: bool = False, optimizer: str = "sgd", **how: Any
) -> Any:
    """A Trainer of two parameters with a store, and those."""
    weights = [gluon.Parameter(name, shape=(3,), init="ones") for name in ("one", "other")]
    for weight in weights:
        weight.initialize(ctx=devices)
    if frozen:
        weights[0].grad_req = "null"
    options = {"learning_rate": 0.1, **({"momentum": 0.9} if optimizer == "sgd" else {})}
    return gluon.Trainer(weights, optimizer, options, mx.kv.create("p3"), **how), weights


def make_steps(trainer: Any, weights: Any, steps: int) -> None:
    for _ in range(steps):
        with mx.autograd.record():
            losses = [
                sum(weight.data(device).square().sum() for weight in weights)
                for device in weights[0].list_ctx()
            ]
        mx.autograd.backward(losses)
        trainer.step(1)


def test_devices_are_alike_after_a_restore(tmp_path: Path) -> None:
    devices = [mx.cpu(0), mx.cpu(1)]
    for begin in (None, 3):
        trainer, weights = trainer_on(devices, update_on_kvstore=False)
        store = trainer._kvstore_params["kvstore"]
        assert store.restore(tmp_path) == begin
        make_steps(trainer, weights, 3)
        if begin is None:
            assert store.snapshot(tmp_path, every=3)
        for weight in weights:
            one, other = (weight.data(device).asnumpy() for device in devices)
            np.testing.assert_array_equal(one, other)
        store.close()


@pytest.mark.parametrize("of_trainer", [True, False])
def test_updates_are_counted_on_by_another_device(tmp_path: Path, of_trainer: bool) -> None:
    """Such as another GPU, after a restart: Adam's steps depend on how many there were."""

    def begin(device: mx.Context) -> Any:
        trainer, weights = trainer_on([device], optimizer="adam", update_on_kvstore=False)
        return trainer, weights, trainer._kvstore_params["kvstore"]

    file = str(tmp_path / "states")
    trainer, weights, store = begin(mx.cpu(0))
    make_steps(trainer, weights, 3)
    assert store.snapshot(tmp_path / "snapshots", every=3)
    trainer.save_states(file)
    kept = [weight.data().copy() for weight in weights]
    make_steps(trainer, weights, 2)
    store.close()
    expected = [weight.data().asnumpy() for weight in weights]
    trainer, weights, store = begin(mx.cpu(1))
    if of_trainer:
        trainer.load_states(file)
        for weight, value in zip(weights, kept):
            weight.set_data(value)
    else:
        assert store.restore(tmp_path / "snapshots") == 3
    make_steps(trainer, weights, 2)
    for weight, value in zip(weights, expected):
        np.testing.assert_allclose(weight.data().asnumpy(), value, 1e-6)
    store.close()


@pytest.mark.parametrize("on_store", [True, False])
@pytest.mark.parametrize("frozen", [(False, True), (True, False)])
def test_parameters_that_are_frozen_or_no_longer(
    tmp_path: Path, frozen: tuple[bool, bool], on_store: bool
) -> None:
    """By a script that does so in the midst of its training."""
    trainer, weights = trainer_on([mx.cpu()], frozen[0], update_on_kvstore=on_store)
    make_steps(trainer, weights, 3)
    store = trainer._kvstore
    assert store.snapshot(tmp_path, every=3)
    store.close()
    trained = [weight.data().asnumpy() for weight in weights]
    trainer, weights = trainer_on([mx.cpu()], frozen[1], update_on_kvstore=on_store)
    store = trainer._kvstore_params["kvstore"]
    assert store.restore(tmp_path) == 3
    for weight, expected in zip(weights, trained):
        np.testing.assert_array_equal(weight.data().asnumpy(), expected)
    make_steps(trainer, weights, 1)
    store.close()


def test_modules_of_one_store_are_parts_of_their_own() -> None:
    store = mx.kv.create("p3")
    made = []
    for name in ("one", "other"):
        output = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name=name)
        module = mx.mod.Module(mx.sym.LinearRegressionOutput(output, name=f"{name}_loss"),
                               label_names=[f"{name}_loss_label"])
        module.bind([("data", (4, 3))], [(f"{name}_loss_label", (4, 2))])
        module.init_params()
        module.init_optimizer(kvstore=store)
        made.append(module)
    assert {"Module", "Module 2"} <= set(store.parts_in_snapshots())
    another = mx.kv.create("p3")
    made[0].init_optimizer(kvstore=another, force_init=True)
    assert "Module" in another.parts_in_snapshots()
    for each in (store, another):
        each.close()


# By the size of a batch.
BUCKETS = {
    size: ([mx.io.DataDesc("data", (size, 3))], [mx.io.DataDesc("label", (size, 2))])
    for size in (4, 2)
}


def module_of_buckets(store: Any, first: float) -> Any:
    """One layer whose weights begin with this value, trained with a store."""

    def symbol_of(size: int) -> Any:
        output = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="layer")
        loss = mx.sym.LinearRegressionOutput(output, mx.sym.var("label"), name="loss")
        return loss, ("data",), ("label",)

    module = mx.mod.BucketingModule(symbol_of, default_bucket_key=4)
    module.bind(*BUCKETS[4])
    module.init_params(mx.init.Constant(first))
    module.init_optimizer(store)
    return module


@pytest.mark.parametrize("on_store", ["0", "1"])
def test_a_module_of_buckets_gives_what_was_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_store: str
) -> None:
    """By way of whichever bucket comes next."""
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", on_store)
    found = []
    for begin, first in ((None, 1), (2, 7)):
        store = mx.kv.create("p3")
        module = module_of_buckets(store, first)
        assert store.restore(tmp_path) == begin
        if begin is None:
            for size, (data, label) in BUCKETS.items():
                arrays = [mx.nd.ones((size, 3))], [mx.nd.ones((size, 2))]
                module.forward_backward(
                    mx.io.DataBatch(
                        *arrays, bucket_key=size, provide_data=data, provide_label=label
                    )
                )
                module.update()
            assert store.snapshot(tmp_path, every=2)
        else:
            module.switch_bucket(2, *BUCKETS[2])
        found.append(module.get_params()[0]["layer_weight"].asnumpy())
        store.close()
    assert (found[0] != 1).all()
    np.testing.assert_array_equal(*found)
