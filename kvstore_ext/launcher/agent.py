"""What mpirun and srun start: finds its number among the tasks and reports to the launcher.

Whoever else listens at one of the addresses does not learn the token, and is not obeyed (proof.py).

The supervisor it then starts is in a session of its own and holds the connection as its input and
output. So it is the launcher that ends it, also after mpirun or srun killed the agent.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import Mapping

from . import job_key, network, orders, proof
from .far_ends import supervisor_command

TOKEN_NAME = "KVSTORE_EXT_LAUNCH_TOKEN"

# Open MPI; MPICH, Intel MPI and others with Hydra; Slurm.
_NUMBER_NAMES = {
    "mpi": ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"),
    "slurm": ("SLURM_PROCID",),
}
_CONNECT_LIMIT = 5.0
_ANSWER_LIMIT = 20.0  # as the launcher may have many tasks to answer


def main(arguments: list[str]) -> int:
    """`arguments` are "mpi" or "slurm", the launcher's addresses, "host:port,host:port", and
    "--secure" where the process gets the job's key."""
    launcher, addresses, *secure = arguments
    try:
        number = task_number(launcher, os.environ)
        token = os.environ.pop(TOKEN_NAME, "")
        if not token:
            raise ValueError(f"{TOKEN_NAME} is not in the environment of this task")
        connection, key = connect(addresses.split(","), number, token)
        if secure:
            os.environ[job_key.NAME] = job_key.key_of_tasks(token)
    except ValueError as error:
        print(f"launch: {error}", file=sys.stderr)
        return 1
    with connection:
        supervisor = subprocess.Popen(
            supervisor_command(sys.executable),
            stdin=connection.fileno(),
            stdout=connection.fileno(),
            env={**os.environ, orders.NAME: key},
            start_new_session=True,
        )
    # Whoever ends the tasks, as Slurm's scancel does, is soon to kill what is still there.
    signal.signal(signal.SIGTERM, lambda number, frame: supervisor.terminate())
    supervisor.wait()
    # The launcher has learned how the process ended and ends the job if need be: a status of
    # ours would only have mpirun or srun do so first, with less to say.
    return 0


def task_number(launcher: str, environment: Mapping[str, str]) -> int:
    """Returns this task's number from 0; ValueError when it was not started as a task."""
    names = _NUMBER_NAMES[launcher]
    for name in names:
        if name in environment:
            return int(environment[name])
    raise ValueError(f"none of {', '.join(names)} is in the environment of this task")


def connect(addresses: list[str], number: int, token: str) -> tuple[socket.socket, str]:
    """Returns a connection to the first address where the launcher answers, and the key of its
    orders; ValueError when none does."""
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            connection = socket.create_connection((host, int(port)), _CONNECT_LIMIT)
        except OSError as error:
            reason: Exception = error
            continue
        try:
            key = proof.introduce(connection, number, token, _ANSWER_LIMIT)
        except (OSError, ValueError) as error:
            connection.close()
            reason = error
            continue
        connection.settimeout(None)
        network.notice_silence(connection)
        return connection, key
    raise ValueError(
        f"{socket.gethostname()} reaches the launcher at none of {', '.join(addresses)} "
        f"({reason}); choose the network with --interface"
    )
