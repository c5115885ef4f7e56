"""The file by which every part of the launcher starts, with the standard library alone.

    python kvstore_ext/launcher/__main__.py -n 4 -s 2 python train.py --kv-store p3

At the same path on every host it is also the far end of a job: with `--supervise` it looks after
one process, with `--join` it is what mpirun and srun start.

It imports its package by place and calls it `launcher`: under its full name kvstore_ext would come
first, and bring MXNet with it. For `python -m kvstore_ext.launcher`, where that has happened before
the first line here, the process begins anew with this file.
"""

from __future__ import annotations

import importlib.util
import os
import sys

_DIRECTORY = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    """Returns the exit status of the part that the first argument asks for."""
    # Each end imports only what it needs, so that a supervisor starts fast and stays small.
    if sys.argv[1:2] == ["--supervise"]:
        from .supervisor import main as supervise

        return supervise()
    if sys.argv[1:2] == ["--join"]:
        from .agent import main as join

        return join(sys.argv[2:])
    if sys.argv[1:2] == ["top"]:
        from .top import main as top

        return top(sys.argv[2:])
    from .main import main as launch

    return launch(sys.argv[1:])


def _import_by_place() -> str:
    """Imports this package without the one it lies in; returns the name it then has."""
    # Python has put the directory first, where a file could hide a module of the library.
    if sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(_DIRECTORY):
        del sys.path[0]
    spec = importlib.util.spec_from_file_location(
        "launcher", os.path.join(_DIRECTORY, "__init__.py")
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)
    return spec.name


def _begin_anew() -> None:
    """Replaces this process by one that has not imported kvstore_ext; does not return."""
    # As it was found: the import has set variables, which are not for the job.
    with open("/proc/self/environ", "rb") as file:
        entries = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
    environment = {name: value for name, _, value in entries}
    command = [sys.executable, os.path.join(_DIRECTORY, "__main__.py"), *sys.argv[1:]]
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    try:
        if __package__:
            _begin_anew()
        __package__ = _import_by_place()  # to which the dots above then refer
        sys.exit(main())
    except KeyboardInterrupt:
        # Before the launcher takes care of signals it has nothing to end.
        sys.exit(130)
