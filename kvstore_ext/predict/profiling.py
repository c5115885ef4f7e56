"""Measures a user's own network on this host: one worker and one server run the script, traced."""
from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Sequence

from ..trace.reading import read
from .job_trace import network_of
from .network import Network

_STANDARD_ERROR = 2
_LAUNCHER = Path(__file__).parents[2] / "kvstore_launch.py"


class ProfileError(RuntimeError):
    """The script failed."""


def profile(script: Sequence[str], batch: int) -> Network:
    """The network that a script trains with a store of kvstore_ext.

    Parameters
    ----------
    script : sequence of str
        The script and its arguments.
    batch : int
        Samples of an iteration.

    Raises
    ------
    ProfileError
        Where the script fails; NetworkError and TraceError where its trace tells nothing.
    """
    with tempfile.TemporaryDirectory(prefix="kvstore_ext-predict-") as directory:
        launch = [sys.executable, str(_LAUNCHER), "-n", "1", "-s", "1", "--trace", directory]
        command = [*launch, sys.executable, *script]
        status = _run(command)
        if status != 0:
            raise ProfileError(f"{script[0]} ended with status {status}")
        return network_of(read(directory), f"kvstore-ext predict --profile {script[0]}", batch)


def _run(launch: Sequence[str]) -> int:
    """The status of a launcher, which is told to end where this process is."""
    # What is predicted stands alone on standard output.
    with subprocess.Popen(launch, stdout=_STANDARD_ERROR) as launcher:
        before = signal.signal(signal.SIGTERM, lambda *_: launcher.terminate())
        try:
            return launcher.wait()
        except BaseException:
            launcher.kill()
            raise
        finally:
            signal.signal(signal.SIGTERM, before)
