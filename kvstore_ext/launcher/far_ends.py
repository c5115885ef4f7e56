"""The commands that start the far ends of a job, on the host where they are run."""

from __future__ import annotations

import os
from typing import Sequence

# By its path, which is the same on all hosts: by the package's name MXNet would be imported.
ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
# Without what is installed there, whose own commands at the start of every Python take their time.
_ALONE = "-S"


def supervisor_command(python: str) -> list[str]:
    """Returns the command that runs a supervisor."""
    return [python, _ALONE, ENTRY, "--supervise"]


def agent_command(
    python: str, launcher: str, addresses: Sequence[str], secure: bool
) -> list[str]:
    """Returns the command of a task of mpirun or srun.

    `launcher` is "mpi" or "slurm", `addresses` are those of the launcher, "host:port" each.
    `secure`: the task's process gets the job's key.
    """
    command = [python, _ALONE, ENTRY, "--join", launcher, ",".join(addresses)]
    return [*command, "--secure"] if secure else command
