"""Every recipe of ours trains for two steps, on data of its shape that are made up on the spot.

By one worker, with small batches; `make test` runs the cheapest of each kind, `make test-all` the
rest too.
"""
from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support import recipe_runs
from tests.support.made_up_data import (
    draw,
    png,
    write_cifar10,
    write_cifar100,
    write_mnist,
    write_records,
)
from tests.support.paths import EXAMPLES
from tests.support.processes import run_python

CHEAP = {
    "ec-dnn-table-3-ec_dnn_m-8",
    "slim-table-2-googlenet-slim-4",
    "terngrad-figure-3a-terngrad",
    "terngrad-table-1-128-terngrad",
}
# The first row of the table that a script prints, with its training loss.
ROW = {
    "train_image.py": r"^ +1 +\d\.\d+ +(\S+) ",
    "train_sockeye.py": r"^ +1 +\d\.\d+ +(\S+) ",
    "train_ec_dnn.py": r"^ +1 +[23] +\d+\.\d +(\S+) ",
}
FLAGS = {
    "train_image.py": ["--threads", 1, "--data-dir", "."],
    "train_sockeye.py": ["--beam", 1, "--bleu-sentences", 1],
    "train_ec_dnn.py": ["--data-dir", "."],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all data sets, each large enough for two steps."""
    folder = tmp_path_factory.mktemp("data")
    write_mnist(folder, draw(10, (1, 28, 28), 10), draw(2, (1, 28, 28), 10))
    write_cifar10(folder, draw(10, (3, 32, 32), 10), draw(2, (3, 32, 32), 10))
    write_cifar100(folder, draw(10, (3, 32, 32), 100), draw(2, (3, 32, 32), 100))
    images = [png(image.transpose(1, 2, 0)) for image in draw(4, (3, 256, 256), 2)[0]]
    write_records(folder, images, images[:2])
    write_text(folder / "data" / "iwslt15")
    return folder


def write_text(folder: Path) -> None:
    """Ten sentences to train on and two held out, in two languages."""
    folder.mkdir(parents=True)
    random = np.random.RandomState(0)
    for part, count in (("train", 10), ("tst2012", 2)):
        lines = [" ".join(random.choice(["one", "two", "three"], 3)) for _ in range(count)]
        for language in ("en", "vi"):
            (folder / f"{part}.{language}").write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("path", "arm"),
    [
        pytest.param(path, arm, id=name, marks=[pytest.mark.all_only] * (name not in CHEAP))
        for name, path, arm in recipe_runs.all_arms()
    ],
)
def test_a_recipe_trains_for_two_steps(
    path: Path, arm: str | None, data: Path, tmp_path: Path
) -> None:
    fields = recipe_runs.fields_of(path, arm)
    script = recipe_runs.script_of(fields)
    small = tmp_path / "small.json"
    small.write_text(json.dumps(recipe_runs.small(fields)))
    flags = ["--recipe", small, *FLAGS[script]]
    output = run_python(EXAMPLES / script, *flags, directory=data, fork=True).stdout
    row = re.search(ROW[script], output, re.MULTILINE)
    assert row, output
    assert math.isfinite(float(row[1]))


def test_the_cheap_ones_are_there() -> None:
    assert {name for name, _, _ in recipe_runs.all_arms()} >= CHEAP
