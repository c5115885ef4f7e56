"""Single processes that run Python until they end."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Mapping

from tests.support.paths import python_path

LIMIT = 120.0  # seconds that a test waits for anything before it fails

Ended = subprocess.CompletedProcess  # with both streams as text


def run_python(
    *arguments: object,
    status: int | None = 0,
    directory: Path | None = None,
    environment: Mapping[str, str | None] | None = None,
    seconds: float = LIMIT,
) -> Ended:
    """Runs `python ARGUMENTS`, which finds the packages of the repository wherever it runs.

    Parameters
    ----------
    status
        With which it has to end; None for any.
    directory
        Where it runs.
    environment
        Variables that differ from those of the tests; None for those that it shall not have. None
        of a job's are passed on.
    """
    variables = {
        **{name: text for name, text in os.environ.items() if not name.startswith("DMLC_")},
        "OMP_NUM_THREADS": "1",  # more threads than cores only disturb each other
        "PYTHONPATH": python_path(),
        **(environment or {}),
    }
    ended = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=directory,
        env={name: text for name, text in variables.items() if text is not None},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert status in (None, ended.returncode), ended.stderr
    return ended
