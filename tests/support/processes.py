"""Single processes that run Python until they end."""
from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Mapping

from tests.support import ending, forked
from tests.support.paths import python_path

LIMIT = forked.LIMIT

Ended = subprocess.CompletedProcess  # with both streams as text


def run_python(
    *arguments: object,
    status: int | None = 0,
    directory: Path | None = None,
    environment: Mapping[str, str | None] | None = None,
    seconds: float = LIMIT,
    fork: bool = False,
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
    fork
        Whether it may be a fork that has imported mxnet already.
    """
    variables = {
        **{name: text for name, text in os.environ.items() if not name.startswith("DMLC_")},
        "OMP_NUM_THREADS": "1",  # more threads than cores only disturb each other
        "PYTHONPATH": python_path(),
        **(environment or {}),
    }
    command = [str(argument) for argument in arguments]
    present = {name: text for name, text in variables.items() if text is not None}
    if fork and not forked.as_users_do:
        ended = _run_fork(command, present, directory or Path.cwd(), seconds)
    else:
        ended = _run_interpreter(command, present, directory, seconds)
    assert status in (None, ended.returncode), ended.stderr
    return ended


def _run_interpreter(
    command: list[str], environment: dict[str, str], directory: Path | None, seconds: float
) -> Ended:
    return subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        preexec_fn=ending.with_parent(),
    )


def _run_fork(
    command: list[str], environment: dict[str, str], directory: Path, seconds: float
) -> Ended:
    process = forked.Forked(command, environment, directory, two_streams=True)
    with ThreadPoolExecutor(2) as readers:
        streams = [readers.submit(stream.read) for stream in (process.stdout, process.stderr)]
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return Ended(command, status, *(stream.result() for stream in streams))
