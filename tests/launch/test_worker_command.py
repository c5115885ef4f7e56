"""Workers that run Python get the runner, and are given further names for the stores."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from kvstore_ext.launcher.worker_command import script_of, through_runner

from .jobs import Job

RUN = "-m kvstore_run"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py --lr 1", f"python {RUN} train.py --lr 1"),
        ("python3 -u train.py", f"python3 -u {RUN} train.py"),
        ("/opt/bin/python3.8 train.py -m x", f"/opt/bin/python3.8 {RUN} train.py -m x"),
        ("python -OOB -W ignore -X dev t.py", f"python -OOB -W ignore -X dev {RUN} t.py"),
        ("python -Wignore -uXdev t.py -c", f"python -Wignore -uXdev {RUN} t.py -c"),
        ("python -uW ignore t.py", f"python -uW ignore {RUN} t.py"),
        (
            "python --check-hash-based-pycs never t.py",
            f"python --check-hash-based-pycs never {RUN} t.py",
        ),
        ("python -- t.py --", f"python {RUN} -- t.py --"),
        ("python report -o x", f"python {RUN} -- report -o x"),
        (f"python {RUN} report x", f"python {RUN} report x"),
        ("python -m pkg.train --lr 1", f"python {RUN} -m pkg.train --lr 1"),
        ("python -mpkg.train", f"python {RUN} -m pkg.train"),
        ("python -Bum pkg.train", f"python -Bu {RUN} -m pkg.train"),
        (f"python -u {RUN} train.py", f"python -u {RUN} train.py"),
        (f"python {RUN} -m pkg.train", f"python {RUN} -m pkg.train"),
        ("python -m kvstore_ext -m pkg.train", f"python {RUN} -m pkg.train"),
    ],
)
def test_python_runs_the_runner(command: str, expected: str) -> None:
    assert through_runner(command.split(), []) == expected.split()
    replaced = expected.replace(RUN, f"{RUN} --replace a=p3 --replace b=p3", 1)
    assert through_runner(command.split(), ["a=p3", "b=p3"]) == replaced.split()


def test_the_runner_by_its_name_stays() -> None:
    command = ["/opt/bin/kvstore-ext", "--join", "train.py", "--lr", "1"]
    assert through_runner(command, []) == command
    replaced = [command[0], "--replace", "a=p3", *command[1:]]
    assert through_runner(command, ["a=p3"]) == replaced


@pytest.mark.parametrize(
    "command",
    [
        "sh -c train.py",
        "python -c pass",
        "python -uc pass",
        "python -",
        "python",
        "python -u",
        "python --version",
        "python -x train.py",
        "python2 train.py",
        "./train.py",
        "env python train.py",
    ],
)
def test_other_commands_stay(command: str) -> None:
    assert through_runner(command.split(), []) == command.split()
    with pytest.raises(ValueError, match=f"--replace: found the command '{command.split()[0]}'"):
        through_runner(command.split(), ["dist_sync=p3"])


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("python -u train.py --lr 1", "train.py"),
        ("python -- train.py", "train.py"),
        ("python --", None),
        ("python -m pkg.train", None),
        ("python -c pass", None),
        ("sh train.py", None),
    ],
)
def test_which_script_python_runs(command: str, script: str | None) -> None:
    assert script_of(command.split()) == script


@pytest.mark.parametrize("text", ["dist_sync", "=p3", "dist_sync=", "a=b=c", "dist sync=p3"])
def test_a_malformed_replacement(job: Job, text: str) -> None:
    assert job.run("-n", "1", "--replace", text, "python", "train.py") == 2
    assert f"argument --replace: found '{text}', allowed is NAME=STORE" in job.errors[-1]
    assert job.lines == []
    assert not job.log_dir.exists()


def test_a_replacement_without_effect(job: Job) -> None:
    assert job.run("-n", "1", "--replace", "dist_sync=p3", "sh", "-c", "true") == 2
    assert "--replace: found the command 'sh', allowed are kvstore-ext, python" in job.errors[-1]
    assert not job.log_dir.exists()


def test_workers_run_through_the_runner(job: Job, tmp_path: Path) -> None:
    (job.directory / "train.py").write_text("")
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "kvstore_run.py").write_text(
        "import sys; print(sys.flags.optimize, *sys.argv[1:])"
    )
    arguments = ["-n", "1", "--server-command", "true", "--replace", "dist_sync=p3"]
    worker = [sys.executable, "-O", "train.py", "--lr", "a b"]
    environment = {"PYTHONPATH": str(modules)}
    assert job.run(*arguments, *worker, environment=environment) == 0, job.errors
    assert job.lines == ["[worker 0] 1 --replace dist_sync=p3 train.py --lr a b"]
