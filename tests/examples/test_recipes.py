"""Recipes: what they may hold, what bad ones get, and that all of ours name what is there."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import datasets
import error_curves
import mxnet as mx
import numpy as np
import pytest
import recipe
import script
from gluon_models import get_model
from gluon_models.sockeye import configuration
from kvstore_ext import ec_dnn
from mxnet.kvstore import KVStoreBase

from tests.support import recipe_runs
from tests.support.paths import EXAMPLES
from tests.support.processes import run_python

ARMS = [pytest.param(path, arm, id=name) for name, path, arm in recipe_runs.all_arms()]


def parser() -> argparse.ArgumentParser:
    """One with a flag of each sort."""
    made = argparse.ArgumentParser()
    made.add_argument("--batch-size", type=script.positive, default=64)
    made.add_argument("--compression", type=json.loads)
    made.add_argument("--lr-schedule", choices=("constant", "step"), default="constant")
    made.add_argument("--resume", action="store_true")
    return made


def arguments(monkeypatch: pytest.MonkeyPatch, path: Path, *flags: str) -> argparse.Namespace:
    monkeypatch.setattr(sys, "argv", ["train.py", "--recipe", str(path), *flags])
    return recipe.parse_arguments(parser())


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})


def test_fields_are_flags_which_the_command_line_overrides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "recipe.json"
    path.write_text(
        '{"stands_for": "table 1", "batch_size": 128, "compression": {"type": "2bit"},\n'
        ' "lr_schedule": "step", "resume": true, "workers": 2}'
    )
    args = arguments(monkeypatch, path)
    assert (args.batch_size, args.lr_schedule, args.resume, args.workers) == (128, "step", True, 2)
    assert args.compression == {"type": "2bit"}
    assert arguments(monkeypatch, path, "--batch-size", "32").batch_size == 32
    assert arguments(monkeypatch, path, "--compression", "null").compression is None
    recipe.check_workers(args.workers, 2)
    with pytest.raises(SystemExit, match="for 2 workers, and there are 3"):
        recipe.check_workers(args.workers, 3)


ARMED = """{"batch_size": 128, "lr_schedule": "step",
 "arms": {
  "small": {"batch_size": 32},
  "resumed": {"resume": true, "workers": 2,
   "batch_size": "many"}
}}"""


def test_an_arm_overrides_what_all_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "recipe.json"
    path.write_text(ARMED)
    args = arguments(monkeypatch, path, "--arm", "small")
    assert (args.batch_size, args.lr_schedule, args.workers) == (32, "step", 0)
    assert arguments(monkeypatch, path, "--arm", "small", "--batch-size", "8").batch_size == 8


@pytest.mark.parametrize(
    ("arm", "text", "message"),
    [
        (None, ARMED, "recipe.json:2: name one of its arms with --arm: small, resumed"),
        ("smal", ARMED, "recipe.json:2: --arm is 'smal'; the arms allowed are small, resumed"),
        ("small", "{}", "recipe.json:1: --arm is 'small'; the arms allowed are none, it has no"),
        ("resumed", ARMED, "recipe.json:5: argument --batch-size: invalid positive value: 'many'"),
        ("a", '{\n"arms": ["a"]}', "recipe.json:2: arms is .*; it must be an object of objects"),
        ("a", '{\n"arms": {"a": 1}}', "recipe.json:2: arms is .*; it must be an object of objects"),
    ],
)
def test_a_wrong_arm_is_named_with_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arm: str | None, text: str, message: str
) -> None:
    (tmp_path / "recipe.json").write_text(text)
    with pytest.raises(SystemExit, match=message):
        arguments(monkeypatch, tmp_path / "recipe.json", *(["--arm", arm] if arm else []))


def test_an_arm_needs_a_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", "--arm", "small"])
    with pytest.raises(SystemExit, match="--arm small needs --recipe"):
        recipe.parse_arguments(parser())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n "batch_size": 1,\n "batchsize": 2\n}', r"bad.json:3: unknown field 'batchsize'; .*"),
        ('{"batch_size":\n"many"}', "bad.json:1: argument --batch-size: invalid positive value"),
        ('{\n"batch_size": 0}', "bad.json:2: argument --batch-size: 0 is too small; it must be at"),
        ('{\n"lr_schedule": "steps"}', "bad.json:2: argument --lr-schedule: invalid choice"),
        ('{\n\n"resume": 1}', "bad.json:3: resume is 1; it must be true or false"),
        ('{"workers": 0}', "bad.json:1: workers is 0; it must be an integer"),
        ('{"batch_size": 1,\n}', "bad.json:2: not JSON"),
        ('{"batch_size": 1,\n"store_options": {"slices": 1}}', "bad.json:2: there is no option"),
        ('{"batch_size": 1,\n"store_options": 1}', "bad.json:2: store_options is 1; it must be"),
        ("[]", "bad.json:1: a recipe is a JSON object, this is a list"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(SystemExit, match=message):
        arguments(monkeypatch, tmp_path / "bad.json")


def test_a_recipe_that_is_not_utf_8_is_named_with_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bad.json").write_bytes(b'{\n"model": "\xff"}')
    with pytest.raises(SystemExit, match=r"bad.json:2: not UTF-8: byte 0xff"):
        arguments(monkeypatch, tmp_path / "bad.json")


def test_a_missing_recipe_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"nowhere\.json"):
        arguments(monkeypatch, tmp_path / "nowhere.json")


def test_options_of_the_store_have_to_reach_the_servers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "recipe.json"
    path.write_text('{"store_options":\n {"slice_bytes": 1000}}')
    arguments(monkeypatch, path)
    assert os.environ["KVSTORE_EXT_OPTIONS"] == '{"slice_bytes": 1000}'
    arguments(monkeypatch, path)
    os.environ.pop("KVSTORE_EXT_OPTIONS")
    os.environ["DMLC_ROLE"] = "worker"  # a launched job, whose servers have started without them
    with pytest.raises(SystemExit, match=r"recipe.json:1: servers need the options too; start the"):
        arguments(monkeypatch, path)


@pytest.mark.parametrize("role", ["server", "scheduler"])
def test_who_serves_imports_nothing_for_a_recipe(tmp_path: Path, role: str) -> None:
    """MXNet's own servers serve as soon as mxnet is imported, and may not before."""
    (tmp_path / "recipe.json").write_text('{"store_options": {"slice_bytes": 1000}}')
    script = (
        "import argparse, sys, recipe\n"
        "recipe.parse_arguments(argparse.ArgumentParser())\n"
        "assert 'mxnet' not in sys.modules and 'kvstore_ext' not in sys.modules\n"
    )
    command = [sys.executable, "-c", script, "--recipe", str(tmp_path / "recipe.json")]
    place = str(Path(recipe.__file__).parent)
    subprocess.run(command, check=True, env={**os.environ, "DMLC_ROLE": role, "PYTHONPATH": place})


@pytest.mark.parametrize(
    ("needed", "held"),
    [
        (200_000, None),
        (200_000, '{"timeout": 60, "silence": 10}'),
        (1000, '{"slice_bytes": 1000, "timeout": 60}'),
    ],
)
def test_a_launched_job_may_have_defaults_and_options_that_a_recipe_leaves_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, needed: int, held: str | None
) -> None:
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps({"store_options": {"slice_bytes": needed}}))
    os.environ["DMLC_ROLE"] = "worker"
    if held:
        os.environ["KVSTORE_EXT_OPTIONS"] = held
    arguments(monkeypatch, path)
    assert os.environ.get("KVSTORE_EXT_OPTIONS") == held


def test_options_that_are_needed_are_named_beside_those_that_are_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "recipe.json"
    path.write_text('{"store_options": {"slice_bytes": 1000}}')
    os.environ["KVSTORE_EXT_OPTIONS"] = '{"timeout": 60}'
    needed = re.escape("""KVSTORE_EXT_OPTIONS='{"timeout": 60, "slice_bytes": 1000}', not""")
    with pytest.raises(SystemExit, match=needed):
        arguments(monkeypatch, path)
    os.environ["KVSTORE_EXT_OPTIONS"] = "[]"
    with pytest.raises(SystemExit, match=r"KVSTORE_EXT_OPTIONS is '\[\]'; it must be a JSON obj"):
        arguments(monkeypatch, path)


@pytest.mark.parametrize(("path", "arm"), ARMS)
def test_every_recipe_of_ours_names_what_there_is(path: Path, arm: str | None) -> None:
    fields = json.loads(path.read_text())
    named = re.fullmatch(r"(p3|terngrad|slim|ec-dnn)-((?:figure|table)-\d+).*", path.stem)
    assert named
    assert fields["stands_for"].lower().startswith(named[1])
    what = fields["stands_for"].replace("tables 1 and", "table").replace("figures", "figure")
    assert named[2].replace("-", " ") in what
    fields.update(fields.get("arms", {}).get(arm, {}))
    assert fields["batch_size"] % fields.get("workers", 1) == 0
    if "source" in fields:
        configuration(fields["model"])
    else:
        get_model(fields["model"], **fields.get("model_options", {}))
        # Those of EC-DNN's script are what that accepts, as below.
        assert "method" in fields or fields["dataset"] in datasets.NAMES


@pytest.mark.parametrize(("path", "arm"), ARMS)
def test_every_recipe_of_ours_is_accepted_by_its_script(
    monkeypatch: pytest.MonkeyPatch, path: Path, arm: str | None
) -> None:
    # Its flags alone: importing it would train.
    name = recipe_runs.script_of(recipe_runs.fields_of(path, arm))
    text = (EXAMPLES / name).read_text()
    start, end = text.index("parser = "), text.index("args = recipe.parse")
    names = {"argparse": argparse, "error_curves": error_curves, "json": json, "script": script}
    exec(compile(text[start:end], name, "exec"), names)
    made = names["parser"]
    flags, workers = recipe.read_recipe(str(path), made, arm)
    args = made.parse_args(flags)
    assert workers in (0, 1, 2, 4, 8, 16)
    assert args.kv_store in KVStoreBase.kv_registry
    if name == "train_ec_dnn.py":
        ec_dnn.Method(args.method, args.tau, args.p, args.mu, args.alpha, args.beta)
        assert (workers == 1) == (args.method == "s_dnn")
    elif args.compression:
        # Workers must be the ones to update, or parameters would travel back as floats.
        assert args.update_on_kvstore == "false" or args.kv_store == "slim_dp"
        mx.kv.create(args.kv_store).set_gradient_compression(args.compression)


def test_recipes_and_arms_that_are_shown_are_there() -> None:
    shown = []
    for text in (recipe.__doc__, (EXAMPLES / "README.md").read_text()):
        shown += re.findall(r"--recipe (examples/\S+\.json) --arm ([\w-]+)", text)
    assert len(shown) >= 2
    assert set(shown) <= {(f"examples/recipes/{path.name}", arm)
                          for _, path, arm in recipe_runs.all_arms()}


def test_a_recipe_trains(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(
        '{"model": "lenet", "dataset": "digits", "epochs": 1, "batch_size": 128, "lr": 0.05,\n'
        ' "lr_schedule": "polynomial", "lr_power": 0.5, "kv_store": "local", "workers": 1}'
    )
    output = run_python(EXAMPLES / "train_image.py", "--recipe", path).stdout
    assert "128 samples a step" in output
    assert "final validation accuracy" in output


def test_cropping_for_cifarnet_keeps_the_pixels_order() -> None:
    image = np.broadcast_to(np.arange(32, dtype=np.uint8) * 3, (1, 3, 32, 32))
    found = set()
    for seed in range(20):
        moved = datasets.crop_and_distort(image, np.random.RandomState(seed))
        assert moved.shape == (1, 3, 24, 24)
        steps = np.diff(moved[0, 0, 0])
        np.testing.assert_allclose(steps, steps[0], rtol=1e-3)  # the contrast is the image's
        assert 0.19 < abs(steps[0]) / 3 < 1.81
        found.add(np.sign(steps[0]))
    assert found == {1.0, -1.0}
