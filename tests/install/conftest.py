"""Environments to install into: one by default, every Python and every way with --all."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from .places import (
    STRANGER,
    VERSIONS,
    Environment,
    copy_checkout,
    find_interpreter,
    keep_objects,
    run_all,
)

OWN_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
WAYS = {
    "wheel": (),  # its path is not known yet
    "checkout": (".[cpu]",),
    "editable": ("-e", ".[cpu]"),
    "bare": (".",),
}


@dataclass
class Installed:
    """What was installed, how, and the directories in which a user might type a command."""

    version: str
    way: str
    environment: Environment
    places: dict[str, Path]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "installed" in metafunc.fixturenames:
        everything = metafunc.config.getoption("--all")
        cases = [(version, way) for version in VERSIONS for way in WAYS]
        chosen = cases if everything else [(OWN_VERSION, "wheel")]
        metafunc.parametrize("installed", chosen, indirect=True, ids="-".join, scope="module")


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where each build leaves its objects for the next one: they differ by Python alone."""
    return tmp_path_factory.mktemp("objects")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, objects: Path) -> Path:
    """What `make wheel` makes with the Python of the tests, of objects compiled before."""
    sources = copy_checkout(tmp_path_factory.mktemp("sources"), objects)
    leave_an_earlier_build(sources)
    command = ["tools/make_wheel.sh", str(Path(sys.executable).parent), "dist"]
    run_all(command, cwd=sources).check_returncode()
    (built,) = (sources / "dist").glob("*.whl")
    return built


def leave_an_earlier_build(sources: Path) -> None:
    """As of a commit with another core, and with a module that is no more."""
    tag = f"{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    package = sources / "build" / f"lib.{tag}" / "kvstore_ext"
    package.mkdir(parents=True)
    for name in (f"_core{sysconfig.get_config_var('EXT_SUFFIX')}", "no_more.py"):
        (package / name).write_text("of an earlier build")


@pytest.fixture(scope="module")
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, objects: Path
) -> Installed:
    """kvstore_ext, installed in a fresh environment in one way."""
    version, way = request.param
    interpreter = sys.executable if version == OWN_VERSION else find_interpreter(version)
    if interpreter is None:
        pytest.skip(f"needs python{version}, on the PATH or among pyenv's versions")
    base = tmp_path_factory.mktemp(f"{way}-{version}")
    environment = Environment(interpreter, base / "environment")
    checkout = copy_checkout(base / "checkout", objects)
    if way == "wheel" and version == OWN_VERSION:
        # Bytecode of all that is installed would take longer than that of what is imported then.
        environment.pip("install", "--no-compile", f"{request.getfixturevalue('wheel')}[cpu]")
    elif way == "wheel":
        sources = copy_checkout(base / "sources", objects)
        environment.pip("wheel", "--no-deps", "-w", "dist", ".", directory=sources)
        (built,) = (sources / "dist").glob("*.whl")
        environment.pip("install", f"{built}[cpu]")
        keep_objects(sources, objects)
    else:
        environment.pip("install", *WAYS[way], directory=checkout)
        keep_objects(checkout, objects)
    places = {"empty": base / "empty", "own": base / "own", "checkout": checkout}
    (base / "empty").mkdir()
    (base / "own" / "kvstore_ext").mkdir(parents=True)
    (base / "own" / "kvstore_ext" / "__init__.py").write_text(STRANGER)
    if way == "bare":
        _do_as_it_says(environment, places["empty"])
    return Installed(version, way, environment, places)


def _do_as_it_says(environment: Environment, directory: Path) -> None:
    """Types what importing kvstore_ext without MXNet says; everything then has to work."""
    ended = environment.run([environment.python, "-c", "import kvstore_ext"], directory)
    said = ended.stderr.strip().splitlines()[-1]
    assert said.startswith("ImportError: kvstore_ext needs mxnet 1.9.1: pip install "), said
    typed = said.split(": ", 2)[2].split(" (")[0]
    environment.pip(*shlex.split(typed)[1:])
