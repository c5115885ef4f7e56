"""The file by which every part of the launcher starts, with the standard library alone.

    python kvstore_ext/launcher/__main__.py -n 4 -s 2 python train.py --kv-store p3

At the same path on every host it is also the far end of a job: with `--supervise` it looks after
one process, with `--join` it is what mpirun and srun start.

For `python -m kvstore_ext.launcher`, where kvstore_ext has come before the first line here and has
brought MXNet with it, the process begins anew with this file.
"""

from __future__ import annotations

import os
import runpy
import sys

_DIRECTORY = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    """Exits with the status of the part that the first argument asks for."""
    run = runpy.run_path(os.path.join(os.path.dirname(_DIRECTORY), "by_place.py"))["run"]
    # Each end imports only what it needs, so that a supervisor starts fast and stays small.
    if sys.argv[1:2] == ["--supervise"]:
        run("launcher.supervisor")
    if sys.argv[1:2] == ["--join"] and sys.argv[2:3] in (["mpi"], ["slurm"]):
        run("launcher.agent", sys.argv[2:])
    if sys.argv[1:2] == ["top"]:
        run("launcher.top", sys.argv[2:])
    run("launcher.main", sys.argv[1:])


def _begin_anew() -> None:
    """Replaces this process by one that has not imported kvstore_ext; does not return."""
    # As it was found: the import has set variables, which are not for the job.
    with open("/proc/self/environ", "rb") as file:
        entries = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
    environment = {name: value for name, _, value in entries}
    command = [sys.executable, os.path.join(_DIRECTORY, "__main__.py"), *sys.argv[1:]]
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    if __package__:
        _begin_anew()
    main()
