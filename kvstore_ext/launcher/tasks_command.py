"""The one command that starts all processes of a job: mpirun's or srun's."""

from __future__ import annotations

from typing import Sequence

from .far_ends import agent_command
from .mpi import is_open_mpi, mpirun_command
from .options import Options
from .slurm import srun_command


def tasks_command(options: Options, tasks: int, addresses: Sequence[str]) -> list[str]:
    """Returns it for --launcher mpi or slurm; its tasks report to one of the addresses."""
    agent = agent_command(options.python, options.launcher, addresses, options.secure)
    known = (tasks, options.hosts, options.launcher_options, agent)
    if options.launcher == "slurm":
        return srun_command(*known)
    return mpirun_command(*known, is_open_mpi())
