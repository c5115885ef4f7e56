"""examples/train_own.py, on folders such as users have."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from tests.support.cluster import Cluster
from tests.support.paths import EXAMPLES
from tests.support.processes import run_python
from tests.support.results import parameters_of

SCRIPT = EXAMPLES / "train_own.py"
FLAGS = ("--epochs", 4, "--batch-size", 32)


def final_accuracy(output: str) -> float:
    found, = re.findall(r"^final accuracy (\d\.\d{4}); ", output, re.MULTILINE)
    return float(found)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Of the handwritten ones the 0s and 1s, (n, 8, 8, 1) as uint8."""
    images, labels = load_digits(n_class=2, return_X_y=True)
    return (images * 15).astype(np.uint8).reshape(-1, 8, 8, 1), labels


def test_a_folder_of_images(tmp_path: Path, digits: tuple[np.ndarray, np.ndarray]) -> None:
    for number, (image, label) in enumerate(zip(*digits)):
        (tmp_path / f"class {label}").mkdir(exist_ok=True)
        Image.fromarray(image[..., 0]).save(tmp_path / f"class {label}" / f"{number}.png")
    (tmp_path / "class 1" / "notes.txt").write_text("no image")
    command = [SCRIPT, tmp_path, *FLAGS, "--size", 8, "--save", tmp_path / "found"]
    output = run_python(*command, fork=True).stdout
    assert final_accuracy(output) > 0.95
    assert len(parameters_of(tmp_path / "found")) == 14


def test_a_folder_of_arrays_on_two_workers(
    tmp_path: Path, cluster: Cluster, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    for name, array in zip(("images", "labels"), digits):
        np.save(tmp_path / f"{name}.npy", array)
    job = cluster.run(SCRIPT, tmp_path, *FLAGS, "--save", tmp_path / "found")
    output = "".join(worker.output for worker in job.workers)  # rank 0's alone
    assert final_accuracy(output) > 0.95
    assert len(re.findall("^epoch", output, re.MULTILINE)) == 4
    assert len(parameters_of(tmp_path / "found")) == 14


def test_a_label_that_is_no_class_is_refused(
    tmp_path: Path, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    np.save(tmp_path / "images.npy", digits[0])
    np.save(tmp_path / "labels.npy", digits[1] - 1)
    errors = run_python(SCRIPT, tmp_path, status=1, fork=True).stderr
    assert "labels.npy has labels from -1; they must be classes, from 0" in errors


def test_a_folder_with_a_single_class_is_refused(tmp_path: Path) -> None:
    (tmp_path / "daisy").mkdir()
    errors = run_python(SCRIPT, tmp_path, status=1, fork=True).stderr
    assert errors.startswith(f"{tmp_path} has images of 1 classes: it needs a folder for each of")
    assert "Traceback" not in errors


# Runs a script where MXNet seems to have two GPUs; contexts on the CPU stand for them.
GPUS = """
import runpy
import sys
import kvstore_ext
import mxnet as mx

mx.context.num_gpus = lambda: 2
mx.gpu = lambda number: mx.cpu(4 + number)
del sys.argv[0]
found = runpy.run_path(sys.argv[0], run_name="__main__")
arrays = [found["inputs"], found["targets"], found["loss"],
          *(parameter.data() for parameter in found["net"].collect_params().values())]
print("all on", *sorted({str(array.context) for array in arrays}))
"""


@pytest.mark.parametrize(("own", "device"), [("1", "cpu(5)"), ("2", "cpu(4)"), (None, "cpu(4)")])
def test_a_worker_trains_on_the_gpu_of_its_number(
    tmp_path: Path, digits: tuple[np.ndarray, np.ndarray], own: str | None, device: str
) -> None:
    for name, array in zip(("images", "labels"), digits):
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "gpus.py").write_text(GPUS)
    command = [tmp_path / "gpus.py", SCRIPT, tmp_path, "--epochs", 1, "--save", tmp_path / "found"]
    output = run_python(
        *command, environment={"KVSTORE_EXT_LOCAL_RANK": own}, fork=True).stdout
    assert output.splitlines()[-1] == f"all on {device}"


@pytest.mark.parametrize("flag", ["--epochs", "--batch-size"])
def test_nothing_to_train_is_refused_at_once(tmp_path: Path, flag: str) -> None:
    errors = run_python(SCRIPT, tmp_path, flag, 0, status=2, fork=True).stderr
    assert "--epochs and --batch-size must be at least 1, and --held-out between" in errors
