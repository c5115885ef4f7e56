"""kvstore-ext, the runner: what a script sees and leaves is the same as without."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from kvstore_ext.compression import TYPES
from kvstore_ext.config import Options

from tests.support.processes import Ended, run_python

# Threads and exit handlers outlive the last line of a script, and still use its module.
STATE = """
import atexit
import pickle
import sys
import threading


class Thing:
    pass


def show(when):
    copied = pickle.loads(pickle.dumps(Thing()))
    print(when, type(copied) is Thing, sys.modules["__main__"].__dict__ is globals())


def later():
    threading.main_thread().join()
    show("in a thread")


threading.Thread(target=later).start()
atexit.register(show, "at exit")
show("in the script")
import beside
print(sys.argv, __name__, beside.__file__, __file__, __package__, __builtins__, sys.path[:2])
print(sorted(globals()), type(__loader__), __spec__, sys.excepthook is sys.__excepthook__)
"""

ENDINGS = {
    "fall": "def fall():\n    raise ValueError('fallen')\nfall()",
    "chain": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise OSError() from error",
    "hook": "sys.excepthook = lambda *error: traceback.print_tb(error[2])\nimport traceback\n1 / 0",
    "status": "sys.exit(7)",
    "interrupt": "raise KeyboardInterrupt",
    "nothing": "pass",
    "syntax": "def",
}

MAIN = ("-m", "kvstore_run")


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A directory, not the one that scripts are run in, where each of ENDINGS is a script."""
    directory = tmp_path / "scripts"
    (directory / "package").mkdir(parents=True)
    (directory / "package" / "__init__.py").write_text("")
    (directory / "beside.py").write_text("")
    for name, ending in ENDINGS.items():
        for place in (directory, directory / "package"):
            (place / f"{name}.py").write_text(f"{STATE}\n{ending}\n")
    (directory / "__main__.py").write_text(f"{STATE}\n{ENDINGS['fall']}\n")
    return directory


def assert_same(directory: Path, *arguments: str, fork: bool = True) -> Ended:
    """Runs Python with the arguments, then with the runner before them; returns how it ended."""
    plain = run_python(*arguments, status=None, directory=directory)
    through = run_python(*MAIN, *arguments, status=None, directory=directory, fork=fork)
    for name in ("stdout", "stderr", "returncode"):
        found, expected = (without_addresses(getattr(how, name)) for how in (through, plain))
        assert found == expected, name
    return plain


def without_addresses(output: str | int) -> str:
    return " ".join(word for word in str(output).split(" ") if not word.startswith("0x"))


@pytest.mark.parametrize("name", ENDINGS)
def test_a_script_runs_and_ends_as_without(scripts: Path, name: str) -> None:
    ended = assert_same(scripts.parent, f"scripts/{name}.py", "--flag", "-m", "a b")
    wanted = {"status": 7, "interrupt": -2, "nothing": 0}
    assert ended.returncode == wanted.get(name, 1)
    assert ("at exit True True" in ended.stdout) == (name != "syntax")


def test_a_module_runs_and_ends_as_without(scripts: Path) -> None:
    ended = assert_same(scripts, "-m", "package.fall", "--flag", "-m", "a b", fork=False)
    assert "ValueError: fallen" in ended.stderr


def test_a_directory_runs_as_without(scripts: Path) -> None:
    ended = assert_same(scripts.parent, "scripts", "--flag", fork=False)
    assert "ValueError: fallen" in ended.stderr


def test_a_linked_script_runs_as_without(scripts: Path) -> None:
    (scripts.parent / "link.py").symlink_to(scripts / "status.py")
    assert assert_same(scripts.parent, str(scripts.parent / "link.py")).returncode == 7


@pytest.mark.parametrize(
    "target", [("missing.py",), ("-m", "missing"), ("-m", "package"), ("scripts/package",)]
)
def test_what_cannot_be_run_is_said_as_without(scripts: Path, target: tuple[str, ...]) -> None:
    ended = assert_same(scripts.parent, *target)
    assert "Traceback" not in ended.stderr
    assert ended.returncode != 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replace", "dist_sync", "t.py"], "found 'dist_sync', allowed is NAME=STORE"),
        (["--replace", "=p3", "t.py"], "found '=p3', allowed is NAME=STORE"),
        (
            ["--replace", "dist_sync=p4", "t.py"],
            "found 'dist_sync=p4', but there is no store 'p4'; allowed are p3, dist_sync_p3",
        ),
        (["--replace", "dist_sync=tern_grad", "t.py"], "; did you mean 'terngrad'?"),
        (["--replace", "a=dist_async_p3", "t.py"], "there is no store 'dist_async_p3'"),
        (["--replaced", "a=p3", "t.py"], "--replaced"),
        ([], "no script to run"),
        (["-m"], "no module to run"),
    ],
)
def test_wrong_arguments_are_said_before_anything_runs(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "t.py").write_text("print('ran')")
    ended = run_python(*MAIN, *arguments, status=2, directory=tmp_path, fork=True)
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_names_are_replaced_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(
        "import mxnet as mx\n"
        "for name in ('p3', 'Dist_Sync', 'dist_device_sync', 'local'):\n"
        "    print(type(mx.kv.create(name)).__name__)\n"
    )
    replaced = ["--replace", "DIST_sync=P3", "--replace=dist_device_sync=dist_sync_p3"]
    ended = run_python(*MAIN, *replaced, "t.py", directory=tmp_path, fork=True)
    assert ended.stdout.split() == [*["P3Worker"] * 3, "KVStore"]
    [alone] = ended.stderr.splitlines()  # once a process
    assert alone.startswith("kvstore_ext: no launcher has started this process")


@pytest.mark.parametrize("arguments", [["t.py"], ["--serve"]])
def test_a_server_needs_its_job_not_the_script(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "t.py").write_text("print('ran')")
    server = {"DMLC_ROLE": "server"}
    ended = run_python(*MAIN, *arguments, status=1, directory=tmp_path, environment=server)
    assert ended.stdout == ""
    assert ended.stderr.startswith("kvstore_ext.server: DMLC_PS_ROOT_URI is not set")


def test_all_stores_and_compressions_are_listed_with_their_options() -> None:
    # The command's other name.
    listed = run_python("-m", "kvstore_ext", "--list", fork=True).stdout
    assert listed.startswith(f"stores: p3, {', '.join(TYPES)}\n")
    for option in dataclasses.fields(Options):
        assert re.search(rf"\n  {option.name} = {option.default!r}\n {{6}}[A-Z]", listed)
    for name, method in TYPES.items():
        assert f"{name}: " in listed
        for option in dataclasses.fields(method):
            about = method.rules()[option.name].allowed
            assert f"{option.name} = {option.default!r}  ({about})" in listed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--every", "5"], "argument --every: only with --snapshot DIR"),
        (["--join", "--snapshot", "d"], "argument --snapshot: not with --join"),
        (["--snapshot", "d", "--every", "0"], "found '0', allowed is a whole number 1 or more"),
    ],
)
def test_steps_between_snapshots_are_checked(arguments: list[str], words: str) -> None:
    found = run_python(*MAIN, *arguments, "script.py", status=2, fork=True)
    assert words in found.stderr


@pytest.mark.parametrize(
    ("command", "role", "whole"),
    [
        (["kvstore_run.py", "--serve"], "scheduler", False),
        (["kvstore-ext", "--serve", "--trust", "mine"], "scheduler", False),
        (["train.py", "--serve"], "scheduler", True),
    ],
)
def test_a_scheduler_is_there_without_most_of_mxnet(
    command: list[str], role: str, whole: bool
) -> None:
    script = (
        f"import sys; sys.argv = {command}; import kvstore_ext; "
        "from kvstore_ext.server import scheduler; import mxnet; "
        "print(mxnet.__version__, hasattr(mxnet, 'nd'), hasattr(kvstore_ext, 'P3Worker'))"
    )
    ended = run_python("-c", script, environment={"DMLC_ROLE": role})
    assert ended.stdout == f"1.9.1 {whole} {whole}\n"


def test_a_server_imports_mxnet_without_what_only_training_uses() -> None:
    script = """
import inspect
import sys

import kvstore_ext
import mxnet as mx

print(hasattr(kvstore_ext, "P3Worker"), "sklearn" in sys.modules, "scipy.stats" in sys.modules)
two = mx.nd.array([2])
print(mx.nd.sgd_update(two, two, lr=0.5).asscalar(), (mx.np.array([1]) + 2).item())
print((mx.sym.var("x") + 1).list_arguments(), [*inspect.signature(mx.nd.sgd_update).parameters][:3])
import scipy.stats
"""
    ended = run_python("-c", script, environment={"DMLC_ROLE": "server"})
    assert ended.stdout.splitlines() == [
        "True False False",
        "1.0 3.0",
        "['x'] ['weight', 'grad', 'lr']",
    ]
