"""Python's own distutils for MXNet, without all of setuptools.

MXNet imports distutils for two classes that compare versions. Where setuptools is installed, its
own takes the place of Python's, until Python 3.11, and brings the rest of setuptools along.
"""
from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from contextlib import contextmanager
from importlib.machinery import PathFinder
from typing import Iterator

_PACKAGE = "distutils"


def has_distutils() -> bool:
    """Whether there is one: Python 3.12 has none but setuptools'."""
    return bool(PathFinder.find_spec(_PACKAGE) or importlib.util.find_spec(_PACKAGE))


@contextmanager
def plain_distutils() -> Iterator[None]:
    """While it lasts, distutils is Python's, unless another one is imported already.

    Whoever imports it later, or setuptools, gets what they would without this.
    """
    importlib.import_module("numpy.testing")  # of NumPy 1.21 and 1.22, which import setuptools
    taken_over = any(type(each).__module__ == "_distutils_hack" for each in sys.meta_path)
    found = PathFinder.find_spec(_PACKAGE)
    if not taken_over or found is None or found.loader is None or _PACKAGE in sys.modules:
        yield
        return
    package = sys.modules[_PACKAGE] = importlib.util.module_from_spec(found)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that Python 3.12 has none
            found.loader.exec_module(package)
        importlib.import_module(f"{_PACKAGE}.version")
        yield
    finally:
        if sys.modules.get(_PACKAGE) is package:
            own = [name for name in sys.modules if name.split(".")[0] == _PACKAGE]
            for name in own:
                del sys.modules[name]
