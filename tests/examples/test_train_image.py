"""The example scripts, run as a user runs them: as processes, read by what they print."""
from __future__ import annotations

import os
import re
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Callable

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
import script
from checkpoints import Checkpoints, save_states
from tensorboardX.proto import event_pb2

from tests.support.cluster import P3_SERVER, STOCK_SERVER, Cluster
from tests.support.paths import EXAMPLES
from tests.support.processes import run_python
from tests.support.results import Arrays, assert_same_bits, parameters_of

TRAIN_IMAGE = EXAMPLES / "train_image.py"
TRAIN_MODULE = EXAMPLES / "train_module.py"

# Gives the checkpoints' directory and what the workers wrote.
Train = Callable[[str], "tuple[Path, list[str]]"]


def run(*command: object) -> str:
    return run_python(*command, fork=True).stdout


def run_cluster(
    cluster: Cluster, script: Path, store: str, *flags: object, fork: bool = True
) -> list[str]:
    """Run two workers and two servers; returns what the workers wrote, rank 0 first."""
    job = cluster.run(script, "--kv-store", store, *flags,
                      server=P3_SERVER if store == "p3" else STOCK_SERVER, fork=fork)
    # Ranks are given in the order of arrival; rank 0 alone writes of accuracy.
    return sorted((worker.output for worker in job.workers), key=lambda text: "accuracy" in text,
                  reverse=True)


def final_accuracy(output: str) -> float:
    found = re.findall(r"^final validation accuracy (\d\.\d{4})$", output, re.MULTILINE)
    assert len(found) == 1, output
    return float(found[0])


def rows_of(output: str) -> list[list[str]]:
    """The table of epochs: epoch, learning rate, training loss, validation accuracy, samples/s."""
    return [line.split() for line in output.splitlines() if re.match(r" +\d+  +\d+\.\d", line)]


def scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard would show: by name, (step, value) in the order of writing."""
    found: dict[str, list[tuple[int, float]]] = {}
    for file in directory.iterdir():
        data = file.read_bytes()
        while data:  # length, its checksum, an event, its checksum
            end = 12 + int.from_bytes(data[:8], "little")
            event = event_pb2.Event.FromString(data[12:end])
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
            data = data[end + 4:]
    return found


def parameters(checkpoint: Path) -> Arrays:
    return parameters_of(checkpoint / "parameters")


UPDATERS = pytest.mark.parametrize(
    "updater", ["true", pytest.param("false", marks=pytest.mark.all_only)])


def test_digits_in_one_process_reaches_the_accuracy_it_prints() -> None:
    output = run_python(TRAIN_IMAGE, "--kv-store", "local", "--epochs", 12).stdout
    assert final_accuracy(output) >= 0.96
    rows = rows_of(output)
    assert [int(row[0]) for row in rows] == list(range(1, 13))
    assert float(rows[-1][2]) < 0.2 < 1.0 < float(rows[0][2])  # the training loss
    assert float(rows[-1][3]) == final_accuracy(output)
    assert all(float(row[4]) > 0 for row in rows)  # samples/s


def test_two_devices_and_adam_and_a_cosine() -> None:
    output = run(TRAIN_IMAGE, "--devices", "cpu:2", "--optimizer", "adam", "--lr", 0.003,
                 "--lr-schedule", "cosine", "--warmup-epochs", 1, "--epochs", 10)
    assert final_accuracy(output) >= 0.95
    rates = [float(row[1]) for row in rows_of(output)]
    assert rates[0] == 0.003
    assert rates[-1] == 0
    assert rates == sorted(rates, reverse=True)


def test_module_script_reaches_the_accuracy_it_prints() -> None:
    assert final_accuracy(run(TRAIN_MODULE, "--kv-store", "local", "--epochs", 8)) >= 0.96


def test_module_script_trains_alike_by_the_same_seed(tmp_path: Path) -> None:
    def train(name: str, seed: int) -> list[tuple[int, float]]:
        run(TRAIN_MODULE, "--kv-store", "local", "--epochs", 1, "--seed", seed, "--tensorboard",
            tmp_path / name)
        return scalars(tmp_path / name)["loss/training"][-1:]

    first = train("first", 3)
    assert train("again", 3) == first != train("other", 4)


@UPDATERS
def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(tmp_path: Path,
                                                                  updater: str) -> None:
    flags = ["--kv-store", "local", "--update-on-kvstore", updater, "--lr-schedule", "step",
             "--lr-steps", "1,3"]
    run(TRAIN_IMAGE, *flags, "--epochs", 4, "--checkpoint-dir", tmp_path / "whole")
    run(TRAIN_IMAGE, *flags, "--epochs", 2, "--checkpoint-dir", tmp_path / "parts")
    # What a run leaves behind that was killed while it wrote a checkpoint.
    (tmp_path / "parts" / "partial").mkdir()
    (tmp_path / "parts" / "partial" / "parameters").write_bytes(b"cut o")
    output = run(TRAIN_IMAGE, *flags, "--epochs", 4, "--checkpoint-dir", tmp_path / "parts",
                 "--resume")
    assert "after epoch 2" in output
    assert "afresh" not in output
    assert sorted(os.listdir(tmp_path / "parts")) == [f"epoch-000{i}" for i in range(1, 5)]
    whole = parameters(tmp_path / "whole" / "epoch-0004")
    assert len(whole) >= 4
    assert_same_bits(parameters(tmp_path / "parts" / "epoch-0004"), whole)


@UPDATERS
def test_a_run_goes_on_from_a_snapshot_within_an_epoch(tmp_path: Path, updater: str) -> None:
    def train(name: str, epochs: int, snapshots: str, *flags: object) -> str:
        return run(TRAIN_IMAGE, "--kv-store", "p3", "--update-on-kvstore", updater, "--epochs",
                   epochs, "--lr-schedule", "step", "--lr-steps", "1,2", "--ema", 0.9,
                   "--checkpoint-dir", tmp_path / name, "--snapshot", tmp_path / snapshots,
                   "--snapshot-every", 7, *flags)

    train("whole", 3, "of whole")
    train("parts", 2, "of parts")
    output = train("parts", 3, "of parts", "--tensorboard", tmp_path / "scalars")
    assert "goes on from the snapshot of step 42 in" in output
    assert "begins anew" not in output
    assert [row[0] for row in rows_of(output)] == ["2", "3"]
    ends = [step for step, _ in scalars(tmp_path / "scalars")["accuracy/validation"]]
    assert ends == [46, 69]  # the epochs' last steps
    for values in ("parameters", "averaged"):
        whole, last = (parameters_of(tmp_path / name / "epoch-0003" / values)
                       for name in ("whole", "parts"))
        assert_same_bits(last, whole)


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (AssertionError("Cannot save states"), "the store p3 keeps it on the servers (Cannot save"),
        (mx.MXNetError("no states"), "the store p3 keeps it on the servers (no states)"),
        (kvstore_ext.ClusterError("worker 1 has not been heard of"), None),
    ],
)
def test_a_checkpoint_without_its_optimizer_is_of_a_store_that_has_no_other(
    raised: Exception, says: str | None
) -> None:
    class Trainer:
        class _kvstore:  # noqa: N801 - as gluon.Trainer calls it
            type = "p3"

        def save_states(self, _file: str) -> None:
            raise raised

    if says is None:
        with pytest.raises(type(raised), match=str(raised)):
            save_states(Trainer(), "epoch-0001")
    else:
        assert save_states(Trainer(), "epoch-0001").startswith(says)


def test_a_run_without_a_snapshot_renames_checkpoints(tmp_path: Path) -> None:
    checkpoints, snapshots = tmp_path / "checkpoints", tmp_path / "snapshots"
    (checkpoints / "epoch-0001").mkdir(parents=True)
    output = run(TRAIN_IMAGE, "--kv-store", "p3", "--epochs", 1, "--checkpoint-dir", checkpoints,
                 "--snapshot", snapshots)
    said = (f"no snapshot in {snapshots}: begins anew; the checkpoints in {checkpoints} are now "
            "named replaced-epoch-0001 and so on")
    assert said in output.splitlines()
    assert parameters(checkpoints / "epoch-0001")
    assert not list((checkpoints / "replaced-epoch-0001").iterdir())


@pytest.mark.parametrize(("steps", "place"),
                         [(0, (0, 0)), (1, (0, 1)), (23, (0, 23)), (24, (1, 1))])
def test_an_epoch_is_over_once_the_next_has_begun(steps: int, place: tuple[int, int]) -> None:
    """Before that nobody may have evaluated it."""
    assert script.place(steps, steps_per_epoch=23) == place


SCHEDULE = ["--lr-schedule", "step", "--lr-steps", "1,2", "--checkpoint-dir"]


@pytest.fixture(scope="module")
def trained(module_cluster: Cluster) -> Train:
    """Three epochs of two workers, or of one with a local store: the checkpoints' directory, and
    what the workers wrote. The same for every test that asks."""

    @lru_cache(maxsize=None)
    def train(store: str) -> tuple[Path, list[str]]:
        directory = module_cluster.directory / store
        flags = [*SCHEDULE, directory, "--epochs", 3]
        if store == "p3":
            flags += ["--progress", "bar", "--tensorboard", f"{directory}-scalars"]
        if store == "local":
            return directory, [run(TRAIN_IMAGE, "--kv-store", store, *flags)]
        # One job as users start it, whatever else is forked.
        return directory, run_cluster(
            module_cluster, TRAIN_IMAGE, store, *flags, fork=store != "p3")

    return train


@pytest.mark.parametrize("store", ["dist_sync", "p3"])
def test_of_two_workers_the_first_alone_prints_the_accuracy(trained: Train, store: str) -> None:
    _, (first, second) = trained(store)
    assert "2 workers" in first
    assert "accuracy" not in second


def test_a_bar_shows_loss_speed_waiting_and_the_time_left(trained: Train) -> None:
    _, (first, second) = trained("p3")
    state = r"steps, \d\d:\d\d left, loss \d\.\d{4}, \d+ samples/s, \d+% waiting"
    # Of an epoch that has just begun nothing is known of the waiting.
    assert re.search(rf"^epoch [123]/3: +\d+% \|.*\| \d+/69 {state}", first, re.MULTILINE)
    assert "left" not in second


def test_without_a_bar_the_table_has_what_was_waited(trained: Train) -> None:
    _, (first, _) = trained("dist_sync")
    assert "left" not in first
    rows = rows_of(first)
    assert rows
    assert all(re.fullmatch(r"\d+%", row[5]) for row in rows)


def test_tensorboard_gets_what_is_printed(trained: Train) -> None:
    directory, (first, _) = trained("p3")
    found = scalars(Path(f"{directory}-scalars"))
    rows, ends = rows_of(first), (23, 46, 69)  # the last steps of three epochs
    for name, column in (("loss/training", 2), ("accuracy/validation", 3)):
        values = dict(found[name])
        assert [f"{values[end]:.4f}" for end in ends] == [row[column] for row in rows]
    assert [f"{dict(found['speed/samples_per_second'])[end]:.0f}" for end in ends] == [
        row[4] for row in rows]
    elements = sum(array.size for array in parameters(directory / "epoch-0003").values())
    for way in ("sent", "received"):
        # Gradients and parameters, and what else the first epoch and messages need.
        assert found[f"communication/{way}_bytes_per_step"][-1][1] == pytest.approx(
            4 * elements, rel=0.1)
    assert found["communication/compression_ratio"][-1][1] == 1
    assert all(0 <= share <= 1 for _, share in found["communication/waiting_share"])


@pytest.mark.parametrize("store", ["dist_sync", "p3"])
def test_checkpoints_without_the_optimizers_state_are_said_to_be(
    trained: Train, store: str
) -> None:
    _, (first, _) = trained(store)
    assert ("checkpoints are without the optimizer's state" in first) == (store == "dist_sync")


@pytest.mark.parametrize("store", ["dist_sync", "p3"])
def test_two_workers_train_as_one_does(trained: Train, store: str) -> None:
    together, (first, _) = trained(store)
    single, (alone,) = trained("local")
    assert final_accuracy(first) == pytest.approx(final_accuracy(alone), abs=0.01)
    one = parameters(single / "epoch-0003")
    two = parameters(together / "epoch-0003")
    for name in one:  # the sums of the gradients are rounded in another order
        np.testing.assert_allclose(two[name], one[name], rtol=1e-3, atol=1e-4, err_msg=name)


def test_two_workers_resume_with_the_bits_of_an_uninterrupted_run(
    cluster: Cluster, trained: Train, tmp_path: Path
) -> None:
    flags = [*SCHEDULE, tmp_path]
    run_cluster(cluster, TRAIN_IMAGE, "p3", *flags, "--epochs", 1)
    resumed, _ = run_cluster(cluster, TRAIN_IMAGE, "p3", *flags, "--epochs", 3, "--resume")
    assert "after epoch 1" in resumed
    assert "afresh" not in resumed
    whole, parts = (parameters(run / "epoch-0003") for run in (trained("p3")[0], tmp_path))
    assert_same_bits(parts, whole)


def test_resuming_without_the_optimizer_state_says_so(
    cluster: Cluster, trained: Train, tmp_path: Path
) -> None:
    directory, (before, _) = trained("dist_sync")
    shutil.copytree(directory, tmp_path / "copy")
    flags = [*SCHEDULE, tmp_path / "copy", "--epochs", 4, "--resume"]
    after, _ = run_cluster(cluster, TRAIN_IMAGE, "dist_sync", *flags)
    assert "starts afresh: the store dist_sync keeps it on the servers" in after
    assert final_accuracy(after) >= final_accuracy(before) - 0.02
    # The schedule goes on where it was.
    assert [row[1] for row in rows_of(after)] == ["0.00050"]


def test_module_script_on_two_workers(cluster: Cluster) -> None:
    first, second = run_cluster(cluster, TRAIN_MODULE, "dist_sync", "--epochs", 8)
    assert final_accuracy(first) >= 0.93
    assert "accuracy" not in second


def test_benchmark_prints_samples_a_second() -> None:
    output = run(TRAIN_IMAGE, "--model", "lenet", "--benchmark", 5, "--image-shape", "3,32,32",
                 "--classes", 10, "--batch-size", 8)
    rate = re.fullmatch(r"5 steps: (\d+\.\d) samples/s", output.splitlines()[-1])
    assert rate
    assert float(rate.group(1)) > 0


@pytest.mark.parametrize(("dataset", "named"), [
    ("mnist", "train-images-idx3-ubyte.gz or train-images-idx3-ubyte"),
    ("cifar10", "data_batch_1.bin or data_batch_1"), ("imagenet-rec", "train.rec")])
def test_missing_files_are_named_with_their_places(tmp_path: Path, dataset: str,
                                                   named: str) -> None:
    flags = ["--dataset", dataset, "--data-dir", tmp_path]
    errors = run_python(TRAIN_IMAGE, *flags, status=1, fork=True).stderr
    assert errors.startswith(f"data set {dataset} needs {named}, which is not in {tmp_path}")
    assert "nothing is downloaded" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(("flags", "message"), [
    (["--batch-size", "63", "--devices", "cpu:2"], "--batch-size 63 does not divide by 1 workers"),
    (["--resume", "--checkpoint-dir", "{}/nope"], "there is no directory {}/nope"),
    (["--devices", "7"], "--devices 7: MXNet sees 0 GPUs"),
    (["--devices", "cpu:0"], "--devices cpu:0: allowed are cpu, cpu:2 (two CPU contexts), own, or"),
    (["--devices", "gpu"], "--devices gpu: allowed are cpu, cpu:2 (two CPU contexts), own, or GPU"),
    (["--devices", "own"], "--devices own: GPU 0 of worker 0 of this host: MXNet sees 0 GPUs here"),
    (["--model", "lenett"], "unknown model 'lenett'"),
    (["--kv-store", "dist_snyc"], "--kv-store dist_snyc is unknown"),
    (["--lr-schedule", "cosine", "--warmup-epochs", "1"],
     "--warmup-epochs 1 leaves --lr-schedule cosine nothing of --epochs 1"),
    (["--lr-schedule", "step", "--lr-steps", "6,3"], "--lr-steps 6,3: each epoch must come after"),
    (["--kv-store", "local", "--snapshot", "{}"], "--snapshot: the store local takes none"),
    (["--dtype", "float16"], "float16 needs GPUs")])
def test_wrong_flags_get_a_plain_error(tmp_path: Path, flags: list[str], message: str) -> None:
    flags = [flag.format(tmp_path) for flag in flags]
    errors = run_python(TRAIN_IMAGE, "--epochs", 1, *flags, status=1, fork=True).stderr
    assert message.format(tmp_path) in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(("flag", "value", "message"), [
    ("--image-shape", "3,x", "found '3,x', allowed are 3 whole numbers of at least 1, separated"),
    ("--lr-steps", "x", "found 'x', allowed are whole numbers of at least 1, separated by")])
def test_numbers_that_are_none_are_told(flag: str, value: str, message: str) -> None:
    assert message in run_python(TRAIN_IMAGE, flag, value, status=2, fork=True).stderr


@pytest.mark.parametrize(("directory", "message"), [
    (None, "--resume needs --checkpoint-dir"),
    ("nope", "--resume: there is no directory {}/nope, which --checkpoint-dir names"),
    ("", "--resume: there is no checkpoint in --checkpoint-dir {}/, no folder named epoch-0001")])
def test_resuming_needs_a_run_to_continue(tmp_path: Path, directory: str | None,
                                          message: str) -> None:
    with pytest.raises(SystemExit, match=message.format(tmp_path)):
        Checkpoints(None if directory is None else f"{tmp_path}/{directory}", resume=True)
    assert not list(tmp_path.iterdir())
