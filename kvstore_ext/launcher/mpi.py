"""The mpirun command that starts an agent for every process of the job."""

from __future__ import annotations

import subprocess
from typing import Sequence

from .agent import TOKEN_NAME
from .hosts import Host

_ANSWER_LIMIT = 30.0  # seconds


def is_open_mpi() -> bool:
    """Returns whether mpirun is Open MPI's; all others in use have MPICH's options.

    Raises OSError where mpirun cannot be asked.
    """
    try:
        answer = subprocess.run(
            ["mpirun", "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_ANSWER_LIMIT,
        )
    except subprocess.TimeoutExpired:
        text = f"mpirun --version has not answered within {_ANSWER_LIMIT:g} s"
        raise TimeoutError(text) from None
    return b"Open MPI" in answer.stdout or b"OpenRTE" in answer.stdout


def mpirun_command(
    tasks: int,
    hosts: Sequence[Host],
    options: Sequence[str],
    agent: Sequence[str],
    open_mpi: bool,
) -> list[str]:
    """Returns the command that runs `agent` as each task; without hosts mpirun takes
    those of the batch job it runs in."""
    names = ",".join(host.name for host in hosts)
    command = ["mpirun", "-n", str(tasks)]
    if open_mpi:
        # In turn over the hosts; a server and a worker share a slot, and neither is tied to the
        # few cores that Open MPI would give it; only MPICH passes the environment by itself.
        command += ["--map-by", "node:OVERSUBSCRIBE", "--bind-to", "none", "-x", TOKEN_NAME]
        command += ["--host", names] if names else []
    else:
        command += ["-ppn", "1"]
        command += ["-hosts", names] if names else []
    return [*command, *options, *agent]
