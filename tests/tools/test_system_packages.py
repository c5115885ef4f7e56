"""What pip does not have: root gets it installed; others get on without, and read its packages."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.system_packages import last_line, needs_root

SCRIPT = Path("tools", "system_packages.sh")
LIST = """\
# A comment
sh        there    test
missing1  one      test
/missing2 two      test
missing3  three    sanitize
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with the script, a list, and commands that stand for apt-get and id."""
    for directory in ("tools", "requirements", "commands"):
        (tmp_path / directory).mkdir()
    shutil.copy(ROOT / SCRIPT, tmp_path / SCRIPT)
    (tmp_path / "requirements" / "debian.txt").write_text(LIST)
    for name, does in (
        ("id", 'echo "$USER_ID"'),
        ("apt-get", 'echo "$@" >>told; echo "what apt-get says"; exit "$APT_STATUS"'),
    ):
        command = tmp_path / "commands" / name
        command.write_text(f"#!/bin/sh\n{does}\n")
        command.chmod(0o755)
    return tmp_path


def run(
    project: Path, *arguments: str, user: int = 0, apt: int = 0
) -> subprocess.CompletedProcess[str]:
    path = f"{project / 'commands'}:{os.environ['PATH']}"
    return subprocess.run(
        [project / SCRIPT, *arguments],
        env={"PATH": path, "USER_ID": str(user), "APT_STATUS": str(apt)},
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )


def test_root_gets_what_is_missing_and_is_told_so(project: Path) -> None:
    ended = run(project, "for", "test")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "Installing one two\n", "")
    update, install = (project / "told").read_text().splitlines()
    assert update.startswith("update")
    assert install.startswith("install")
    assert install.endswith(" one two")


def test_others_are_told_what_to_install(project: Path) -> None:
    ended = run(project, "for", "test", user=1000)
    assert (ended.returncode, ended.stdout) == (1, "")
    said = "make test skips what needs packages; as root: apt-get install one two\n"
    assert ended.stderr == said
    assert not (project / "told").exists()


def test_so_is_root_where_apt_get_fails(project: Path) -> None:
    ended = run(project, "for", "sanitize", apt=100)
    assert ended.returncode == 1
    said = "make sanitize skips what needs packages; as root: apt-get install three\n"
    assert ended.stderr == f"what apt-get says\n{said}"


def test_nothing_is_said_where_nothing_is_missing(project: Path) -> None:
    ended = run(project, "for", "demo", user=1000)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_session_ends_with_the_packages_that_its_tests_lack(tmp_path: Path) -> None:
    # Where sshd may be found as well, but not ssh.
    test = "tests/launch/test_ssh.py::test_interpreter_that_is_not_there"
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        env={**os.environ, "PATH": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    *_, summary, line = ended.stdout.splitlines()
    assert summary.startswith("1 skipped in ")
    assert line.startswith("Skipped were tests that need packages; as root: apt-get install ")
    assert "openssh-client" in line.split()


def test_every_package_is_named_once() -> None:
    reasons = ["Skipped: needs Debian's two one", "Skipped: needs Debian's two", "Skipped: other"]
    line = last_line(reasons)
    assert line is not None
    assert line.endswith("apt-get install one two")
    assert last_line(["Skipped: other"]) is None


def test_pythons_that_are_not_there_are_named() -> None:
    reasons = [f"Skipped: needs python3.{minor}, on the PATH" for minor in (9, 8, 9)]
    assert last_line(reasons) == "Skipped were tests that need python3.8, python3.9"


def test_tests_that_need_root_are_named_too() -> None:
    root = f"Skipped: {needs_root.kwargs['reason']}"
    alone = "Skipped were tests that need root, to make network namespaces or to read the network"
    assert last_line([root, "Skipped: other", root]) == alone
    both = last_line(["Skipped: needs Debian's one", root])
    assert both == f"{alone}, and that need packages; as root: apt-get install one"
