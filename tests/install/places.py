"""Checkouts, interpreters and fresh environments, as a user has them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, Mapping, Sequence

from tests.support.paths import ROOT

LIMIT = 600.0  # seconds: compiling takes a minute or two, more on a busy machine
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12")

# What a user might have under our name, and what must never be imported in its place.
STRANGER = "raise SystemExit('the kvstore_ext of the working directory was imported')\n"


def copy_checkout(directory: Path, objects: Path | None = None) -> Path:
    """Copies what a fresh clone has and, with their times, what was compiled of it before.

    Without `objects`, a directory for what was, nothing compiled is copied.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split("\0"):
        if name and (ROOT / name).exists():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name)
    if objects is None:
        return directory
    keep_objects(ROOT, directory / "build")
    for kind in objects.iterdir():
        shutil.copytree(kind, directory / "build" / kind.name, dirs_exist_ok=True)
    return directory


def keep_objects(checkout: Path, objects: Path) -> None:
    """Copies what was compiled in the checkout into `objects`, a directory a kind of Python."""
    for kind in (checkout / "build").glob("*-pybind11-*"):
        shutil.copytree(kind, objects / kind.name, dirs_exist_ok=True)


def find_interpreter(version: str) -> str | None:
    """The path of a Python of this version, from the PATH or among pyenv's; None without one."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [f"python{version}", *sorted(map(str, pyenv.glob(f"{version}.*/bin/python3")))]
    for candidate in candidates:
        path = shutil.which(candidate)
        # pyenv has placeholders for versions that are not chosen; they only fail.
        if path is None:
            continue
        ended = subprocess.run([path, "-c", ""], capture_output=True, check=False)
        if ended.returncode == 0:
            return path
    return None


class Environment:
    """A fresh virtual environment, whose processes see nothing of the tests' own."""

    def __init__(self, interpreter: str, directory: Path) -> None:
        subprocess.run([interpreter, "-m", "venv", str(directory)], check=True, timeout=LIMIT)
        self.bin = directory / "bin"
        self.python = str(self.bin / "python")

    def pip(self, *arguments: str, directory: Path | None = None) -> None:
        """Runs pip, with whatever has to be downloaded and compiled."""
        command = [self.python, "-m", "pip", "-q", *arguments]
        ended = self.run(command, directory, compiler=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def run(
        self,
        command: Sequence[str],
        directory: Path | None,
        *,
        compiler: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command until it ends; only the environment's own programs are on its PATH,
        unless it needs a compiler."""
        prefixes = ("PYTHON", "DMLC_", "KVSTORE_EXT_", "MXNET_", "PS_", "VIRTUAL_ENV")
        variables = {
            name: text for name, text in os.environ.items() if not name.startswith(prefixes)
        }
        variables["PATH"] = f"{self.bin}:{os.environ['PATH']}" if compiler else str(self.bin)
        variables["OMP_NUM_THREADS"] = "1"
        return run_all(
            command, cwd=directory, env={**variables, **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )


def run_all(command: Sequence[str], **how: Any) -> subprocess.CompletedProcess[str]:
    """As subprocess.run; when time is up, compilers that the command has started end with it."""
    with subprocess.Popen(command, text=True, start_new_session=True, **how) as process:
        try:
            output, errors = process.communicate(timeout=LIMIT)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
