"""Every command of the documents works: rules.py says what is run for it."""
from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Callable

import numpy as np
import pytest

from tests.support import forked
from tests.support.cluster import Cluster
from tests.support.processes import LIMIT, run_python
from tests.support.system_packages import need

from .documents import ROOT, commands, documents
from .rules import dry_run, run_for, script_words

TRAIN = Path(__file__).with_name("train.py")
SERVER = "kvstore-ext --serve"  # which has a test of its own
RUNNER = re.compile(
    r"((?:\w+='[^']*' )*)kvstore-ext (?!--check)([^;|&]*)")
# Runs of the replay's that only say what they would do, as figures do for rules.py.
FIGURES = re.compile(r"python (-m benchmarks\.(?:figures|replay(?=.* --dry-run)) [^;|&<>]*)")

# Each once, with the first place where it stands.
COMMANDS: dict[str, str] = {}
for _document in documents():
    for _command in commands(_document):
        COMMANDS.setdefault(_command.text, _command.place)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands run: as in a checkout that has the user's script, hostfile and data."""
    directory = tmp_path_factory.mktemp("workplace")
    for name in ("kvstore_ext", "gluon_models", "examples", "benchmarks", "tools"):
        (directory / name).symlink_to(ROOT / name)
    (directory / "train.py").write_text(TRAIN.read_text())
    (directory / "hosts").write_text("one\ntwo\n")
    (directory / "data" / "digits").mkdir(parents=True)
    np.save(directory / "data" / "digits" / "images.npy", np.zeros((128, 8, 8, 1), np.uint8))
    np.save(directory / "data" / "digits" / "labels.npy", np.arange(128) % 10)
    return directory


@pytest.fixture(scope="module")
def run(workplace: Path) -> Callable[[str], None]:
    """Runs a command of the shell, once; fails where it does. Of the runner, and for figures and
    replays, a fork will do."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}

    @lru_cache(maxsize=None)
    def run(command: str) -> None:
        runner = RUNNER.fullmatch(command)
        if runner:
            variables = dict(word.split("=", 1) for word in shlex.split(runner[1]))
            arguments = ["-m", "kvstore_ext", *shlex.split(runner[2])]
            run_python(*arguments, directory=workplace, environment=variables, fork=True)
            return
        figures = FIGURES.fullmatch(command)
        if figures:
            arguments = shlex.split(figures[1])
            run_python(*arguments, directory=workplace, seconds=5 * LIMIT, fork=True)
            return
        ended = subprocess.run(["bash", "-c", command], cwd=workplace, env=environment, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=5 * LIMIT, check=False)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}"

    return run


@pytest.fixture(scope="module")
def wrong_flags(workplace: Path) -> dict[str, str]:
    """What is wrong with the commands of examples and benchmarks."""
    scripts = [command for command in COMMANDS if script_words(command)]
    words = [script_words(command) for command in scripts]
    reader = Path(__file__).with_name("read_flags.py")
    output = run_python(reader, json.dumps(words), directory=workplace, fork=True).stdout
    return dict(zip(scripts, json.loads(output.splitlines()[-1])))


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != SERVER])
def test_a_command_works(
    command: str,
    run: Callable[[str], None],
    wrong_flags: dict[str, str],
    request: pytest.FixtureRequest,
) -> None:
    stands_for = run_for(command)
    assert stands_for, f"{COMMANDS[command]}: tests/docs/rules.py has no rule for {command}"
    assert wrong_flags.get(command, "") == ""
    if "--launcher mpi" in command:
        need("mpirun")
    line = stands_for.all if request.config.getoption("--all") else stands_for.always
    for needed in filter(None, (dry_run(command), line)):
        run(needed)


def test_servers_of_another_launcher_serve_its_worker(cluster: Cluster) -> None:
    assert SERVER in COMMANDS
    serve = ("-m", "kvstore_ext", "--serve")
    job = cluster.run(TRAIN, workers=1, servers=1, server=serve, fork=not forked.as_users_do)
    assert "trained by P3Worker" in job.workers[0].output


def test_the_runner_has_one_name() -> None:
    """One document says what does the same where that name is not to be had."""
    for document in documents():
        text = document.read_text(encoding="utf-8")
        assert not re.search(r"python -m kvstore_ext\b(?!\.)", text), document
        explains = document.name == "getting-started.md"
        assert ("python -m kvstore_run" in text) == explains, document


def test_a_command_without_a_rule_is_noticed() -> None:
    assert run_for("python train.py") is None
    assert run_for("kvstore-launch -n 2 ./train") is None
    assert run_for("python benchmarks/another.py") is None
    assert run_for("python -m kvstore_ext train --check") is None
