"""The file by which the check and its probes start, with the standard library alone.

    python kvstore_ext/check/__main__.py -H hosts

With `--probe` it is what the launcher's supervisors run on the hosts.

It imports its room by place: kvstore_ext's own `__init__`, which brings MXNet with it, is not run.
"""
from __future__ import annotations

import os
import sys
from types import ModuleType

_DIRECTORY = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    """Returns the exit status of the part that the first argument asks for."""
    if sys.argv[1:2] == ["--probe"]:
        from kvstore_ext.check.probe import main as probe

        return probe()
    from kvstore_ext.check.main import main as check

    return check(sys.argv[1:])


def _import_by_place() -> None:
    """Gives modules of kvstore_ext their directory, without running the package's `__init__`."""
    # Python has put the directory first, where a file could hide a module of the library.
    if sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(_DIRECTORY):
        del sys.path[0]
    package = ModuleType("kvstore_ext")
    package.__path__ = [os.path.dirname(_DIRECTORY)]
    sys.modules["kvstore_ext"] = package


if __name__ == "__main__":
    _import_by_place()
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
