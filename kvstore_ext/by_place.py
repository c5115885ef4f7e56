"""Runs a module of the package without the package's own `__init__`, which brings MXNet with it.

A file that starts a command finds this one by its path, where kvstore_ext cannot be imported too:

    runpy.run_path(".../kvstore_ext/by_place.py")["run"]("trace.main", sys.argv[1:])

The standard library is enough.
"""
from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def run(module: str, *arguments: Any) -> NoReturn:
    """Exits with the status that `main` of a module of the package returns.

    Parameters
    ----------
    module
        Its name within kvstore_ext, such as "trace.main".
    arguments
        What `main` is called with.
    """
    try:
        _import_by_place()
        sys.exit(import_module(f"kvstore_ext.{module}").main(*arguments))
    except KeyboardInterrupt:
        sys.exit(130)  # the launcher has nothing to end before it takes care of signals itself


def _import_by_place() -> None:
    """Gives modules of kvstore_ext their directory."""
    # Python has put a started file's directory first, where a room's file could hide a module of
    # the library.
    if sys.path and os.path.dirname(os.path.realpath(sys.path[0])) == os.path.realpath(_PACKAGE):
        del sys.path[0]
    package = ModuleType("kvstore_ext")
    package.__path__ = [_PACKAGE]
    sys.modules["kvstore_ext"] = package
