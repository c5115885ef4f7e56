"""However it was installed and wherever one types, jobs start; what cannot work says what to type.

`make test` tries the wheel with its own Python, `make test-all` every way with every Python.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.jobs import PULLED, TRAIN
from tests.support.paths import ROOT

from .conftest import Installed
from .places import Environment

PLACES = ("checkout", "empty", "own")
ENTRIES = ("launch.py", "kvstore-launch")
RUNNERS = ("kvstore-ext", "python -m kvstore_run")
# Of the entries and of the runners, where others of the same name lie in the way.
SELECTED = {
    "entry": [("checkout", "launch.py"), ("own", "kvstore-launch")],
    "runner": [("checkout", "kvstore-ext"), ("own", "python -m kvstore_run")],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everything = metafunc.config.getoption("--all")
    for name, values in {"entry": ENTRIES, "runner": RUNNERS}.items():
        if name in metafunc.fixturenames:
            cases = [(place, value) for place in PLACES for value in values]
            metafunc.parametrize(("place", name), cases if everything else SELECTED[name])


def python(installed: Installed, place: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [installed.environment.python, *arguments]
    return installed.environment.run(command, installed.places[place])


def last_line(ended: subprocess.CompletedProcess[str]) -> str:
    return ended.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("place", PLACES)
def test_an_import(installed: Installed, place: str) -> None:
    code = "import kvstore_ext, mxnet; print(kvstore_ext.__version__, kvstore_ext.__file__)"
    ended = python(installed, place, "-c", code)
    if place == "own":  # as Python has it: nothing of ours has run
        assert last_line(ended) == "the kvstore_ext of the working directory was imported"
    elif place == "checkout" and installed.way != "editable":
        checkout = installed.places["checkout"]
        assert last_line(ended).startswith(
            f"ImportError: kvstore_ext in {checkout / 'kvstore_ext'} is not compiled for "
            f"{installed.environment.python}: pip install -e {checkout}; "
        )
    else:
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.startswith("0.")


def test_the_runner_passes_over_what_is_not_compiled(
    installed: Installed, place: str, runner: str
) -> None:
    program, *arguments = runner.split()
    command = [str(installed.environment.bin / program), *arguments, "--list"]
    ended = installed.environment.run(command, installed.places[place])
    assert ended.returncode == 0, ended.stderr
    assert "terngrad: " in ended.stdout


def test_a_job(installed: Installed, place: str, entry: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    environment, directory = installed.environment, installed.places[place]
    launch = {
        "launch.py": [environment.python, str(installed.places["checkout"] / "tools/launch.py")],
        "kvstore-launch": [str(environment.bin / "kvstore-launch")],
    }[entry]
    logs = tmp_path / "logs"
    # One of the ways with a key, so that each Python has tried that.
    secure = ["--secure"] if entry == "kvstore-launch" else []
    arguments = [*secure, "-n", "1", "-s", "1", "--log-dir", str(logs), "python", str(script)]
    ended = environment.run([*launch, *arguments], directory)
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout.splitlines()
    encrypting = [line for line in said if " encrypts with the job's key " in line]
    assert len(encrypting) == (3 if secure else 0)
    assert [line for line in said if line not in encrypting] == [PULLED]
    said = "".join(path.read_text() for path in logs.iterdir())
    assert said.count("encrypts with the job's key") == (3 if secure else 0)


def test_plain_mxnet_can_be_imported(installed: Installed) -> None:
    ended = python(installed, "empty", "-c", "import mxnet; print(mxnet.__version__)")
    if installed.version == "3.12":  # it begins at NumPy 1.26: docs/getting-started.md
        assert "module 'numpy' has no attribute 'bool'" in ended.stderr
        ended = python(installed, "empty", "-c", "import kvstore_ext, mxnet; print(1)")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.all_only
def test_the_demo_trains_from_the_wheel_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(sys.executable, tmp_path / "environment")
    environment.pip("install", f"{wheel}[cpu,examples]")
    launch = [str(environment.bin / "kvstore-launch"), "-n", "2", "-s", "2"]
    script = [str(ROOT / "examples" / "train_image.py"), "--model", "lenet", "--dataset", "digits"]
    train = [*launch, "python", *script, "--kv-store", "p3", "--epochs", "1"]
    ended = environment.run(train, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "accuracy" in ended.stdout
