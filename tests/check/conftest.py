"""Hosts to check, and an interpreter without packages."""

from __future__ import annotations

import venv
from pathlib import Path

import pytest

from tests.launch.conftest import job, sshd  # noqa: F401 - fixtures of that room


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment in which nothing is installed."""
    directory: Path = tmp_path_factory.mktemp("bare")
    venv.create(directory, symlinks=True)
    return str(directory / "bin" / "python")
