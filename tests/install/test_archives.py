"""What the wheel and the source archive hold."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import kvstore_ext

from tests.support.paths import ROOT

from .places import LIMIT, copy_checkout


def test_the_wheel_runs_on_hosts_of_other_makes(wheel: Path) -> None:
    assert "-manylinux_2_" in wheel.name


def test_the_wheel_has_what_runs_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")}
    expected = {
        name
        for name in tracked("kvstore_ext", "gluon_models", "kvstore_launch.py", "kvstore_run.py")
        if "/csrc/" not in name
    }
    assert expected <= names
    rest = [name for name in names - expected if ".dist-info/" not in name]
    assert [name.partition(".")[0] for name in rest] == ["kvstore_ext/_core"]


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    found = HeaderParser().parsestr(archive.read(name).decode())
    assert found["Version"] == kvstore_ext.__version__
    assert found["Author"] == "the kvstore_ext developers"
    assert found["License"] == "Apache-2.0"
    licences = [Path(name).name for name in archive.namelist() if ".dist-info/" in name]
    assert {"LICENSE", "NOTICE", "entry_points.txt"} <= set(licences)


def test_pip_compiles_with_the_pybind11_of_make_demo() -> None:
    """setup.py keeps objects by its version, so that another one compiles all of them again."""
    pinned = re.search(r"^pybind11==[\d.]+$", (ROOT / "requirements/build.txt").read_text(), re.M)
    assert pinned is not None
    required = re.search(r"^requires = (\[.*\])$", (ROOT / "pyproject.toml").read_text(), re.M)
    assert required is not None
    assert pinned[0] in json.loads(required[1])


def test_the_source_archive_has_all_of_the_checkout(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path / "checkout")
    command = "from setuptools import build_meta; print(build_meta.build_sdist('dist'))"
    subprocess.run(
        [sys.executable, "-c", command],
        cwd=checkout,
        capture_output=True,
        timeout=LIMIT,
        check=True,
    )
    (built,) = (checkout / "dist").glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    # What only a repository and its tools look at.
    assert {name for name in tracked() if Path(name).name[0] != "."} <= names


def tracked(*below: str) -> set[str]:
    command = ["git", "ls-files", "--", *below]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
