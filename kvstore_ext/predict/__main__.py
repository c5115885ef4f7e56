"""The file by which kvstore-ext predict starts, without MXNet.

It imports its room by place: kvstore_ext's own `__init__`, which brings MXNet with it, is not run.
"""
from __future__ import annotations

import os
import sys
from types import ModuleType

_DIRECTORY = os.path.dirname(os.path.abspath(__file__))


def _import_by_place() -> None:
    # Python has put the directory first, where a file could hide a module of the library.
    if sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(_DIRECTORY):
        del sys.path[0]
    package = ModuleType("kvstore_ext")
    package.__path__ = [os.path.dirname(_DIRECTORY)]
    sys.modules["kvstore_ext"] = package


if __name__ == "__main__":
    _import_by_place()
    from kvstore_ext.predict.main import main

    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
