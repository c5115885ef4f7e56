"""examples/train_ec_dnn.py, run as a user runs it."""
from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import datasets
import mxnet as mx
import numpy as np
import pytest
from gluon_models import get_model
from kvstore_ext.ec_dnn import Ensemble

from tests.support.cluster import Cluster
from tests.support.paths import EXAMPLES
from tests.support.processes import Ended, run_python
from tests.support.results import assert_same_bits, parameters_of

SVG = "{http://www.w3.org/2000/svg}"
SCRIPT = EXAMPLES / "train_ec_dnn.py"


def table(output: str) -> list[list[str]]:
    """Round, steps, seconds, training loss, local and global error, shares of relabelling and of
    waiting."""
    return [line.split() for line in output.splitlines() if re.match(r" +\d+ +\d+ +\d+\.\d ", line)]


def final_errors(output: str) -> list[str]:
    """Of the local and of the global model."""
    found = re.findall(r" (\d+\.\d%) \(of (?:the|that) ", output)
    assert len(found) == 2, output
    return found


def error_of(network: mx.gluon.Block) -> str:
    images, labels = (np.concatenate(part) for part in zip(*datasets.digits(0).validation(256)))
    return f"{(network(mx.nd.array(images)).asnumpy().argmax(axis=1) != labels).mean():.1%}"


def share(percentage: str) -> float:
    return float(percentage.rstrip("%")) / 100


class Trained(NamedTuple):
    """What two workers have left."""

    output: str  # of rank 0
    picture: Path
    prefix: Path  # of the saved models


@pytest.fixture(scope="module")
def trained(module_cluster: Cluster) -> Trained:
    prefix, picture = (module_cluster.directory / name for name in ("found", "errors.svg"))
    job = module_cluster.run(SCRIPT, "--method", "ec_dnn_m", "--epochs", 3, "--tau", 10,
                             "--p", 1, "--p-of", "training", "--picture", picture, "--save", prefix)
    output, = [worker.output for worker in job.workers if "final" in worker.output]
    return Trained(output, picture, prefix)


def test_two_workers_print_errors_that_fall_and_what_relabelling_took(trained: Trained) -> None:
    rows = table(trained.output)
    steps = 3 * (1437 // 2 // 16)
    length = 10 + math.ceil(steps / 100)
    # Before the round's compression, as the errors are.
    assert [int(row[1]) for row in rows] == [length * i + 10 for i in range(len(rows))]
    assert len(rows) == round(steps / length)
    assert share(rows[-1][5]) < min(0.5, share(rows[0][5]))
    assert re.search(r"relabelling took \d+% of \d+\.\d s of training", trained.output)
    assert re.search(r"waiting for other workers' models \d+%", trained.output)
    assert 0 < share(rows[-1][6]) < 1
    assert 0 < share(rows[-1][7]) < 1


def test_both_models_are_saved_with_the_errors_that_are_printed(trained: Trained) -> None:
    local = get_model("nin_digits", classes=10)
    together = Ensemble([get_model("nin_digits", classes=10) for _ in range(2)])
    for which, network in (("local", local), ("global", together)):
        network.load_parameters(f"{trained.prefix}-{which}.params")
    assert [error_of(local), error_of(together)] == final_errors(trained.output)


def test_the_picture_has_a_point_a_round_the_lower_the_smaller_the_error(trained: Trained) -> None:
    rows = table(trained.output)
    drawing = ElementTree.parse(trained.picture).getroot()
    for name, column in (("local, mean of the workers", 4), ("global", 5)):
        shape = drawing.find(f".//{SVG}g[@id='{name}']/{SVG}path").get("d")
        points = [tuple(map(float, point)) for point in re.findall(r"[ML] (\S+) (\S+)", shape)]
        assert len(points) == len(rows)
        assert [x for x, _ in points] == sorted(x for x, _ in points)
        heights = np.array([y for _, y in points])
        errors = np.array([share(row[column]) for row in rows])
        assert np.corrcoef(heights, np.log(errors))[0, 1] < -0.99


def test_the_picture_says_what_it_shows(trained: Trained) -> None:
    words = {text.text for text in ElementTree.parse(trained.picture).iter(f"{SVG}text")}
    assert words >= {
        "ec_dnn_m with 2 workers: nin_digits on digits",
        "seconds of training, evaluation apart",
        "test examples not recognised (logarithmic scale)",
        "local, mean of the workers",
        "global",
        "50 %",
    }


def test_a_single_worker_is_s_dnn() -> None:
    output = run_python(SCRIPT, "--method", "s_dnn", "--epochs", 2, fork=True).stdout
    local, together = final_errors(output)
    assert local == together
    assert share(local) < 0.5
    rows = table(output)
    assert rows
    assert all(row[4] == row[5] for row in rows)


def test_a_run_goes_on_from_a_snapshot(tmp_path: Path) -> None:
    def train(name: str, epochs: int, snapshots: str) -> Ended:
        flags = ["--lr-schedule", "constant", "--save", tmp_path / name, "--progress", "bar"]
        snapshot = ["--snapshot", tmp_path / snapshots, "--snapshot-every", 40]
        command = [SCRIPT, "--method", "s_dnn", "--epochs", epochs, *flags, *snapshot]
        return run_python(*command, fork=True)

    whole = table(train("whole", 2, "of whole").stdout)
    train("first", 1, "of parts")
    last = train("last", 2, "of parts")
    assert "goes on from the snapshot of step 80 in" in last.stdout
    assert re.search("epoch 9/9: 100% .* 180/180 steps", last.stderr)
    rows = table(last.stdout)
    assert [row[0] for row in rows] == list("56789")
    assert [row[3:6] for row in rows] == [row[3:6] for row in whole[4:]]
    assert_same_bits(*(parameters_of(tmp_path / f"{name}-local.params")
                       for name in ("last", "whole")))


def test_a_snapshot_of_other_flags_is_refused(tmp_path: Path) -> None:
    """It has the schedule, which would go on as it was."""
    snapshot = ["--snapshot", tmp_path / "snapshots", "--snapshot-every", 40]
    command = [SCRIPT, "--method", "s_dnn", *snapshot, "--epochs"]
    run_python(*command, 1, fork=True)
    errors = run_python(*command, 2, status=1, fork=True).stderr
    assert "it has --epochs 1; this run has 2" in errors
    errors = run_python(*command, 1, "--lr", 0.5, status=1, fork=True).stderr
    assert "it has --lr 0.05; this run has 0.5" in errors


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--method", "ec_dnn", "one of s_dnn"),
        ("--model", "nin_digit", "unknown model"),
    ],
)
def test_bad_flags_are_answered(flag: str, value: str, words: str) -> None:
    assert words in run_python(SCRIPT, flag, value, status=1, fork=True).stderr
