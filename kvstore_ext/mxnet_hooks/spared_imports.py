"""Packages that importing MXNet takes along, and that hardly any script asks it for.

MXNet imports scikit-learn for the base of FeedForward alone, SciPy's statistics for quantization
and for its own tests, and requests for downloads: these are imported once something asks for them.
For two classes that compare versions it imports distutils, for which setuptools gives its own, and
all of itself with it: Python's own has them as well.
"""
from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import contextmanager
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any, Dict, Iterator, List

# MXNet asks these for functions, when it calls them.
_OF_FUNCTIONS = ("scipy.stats", "requests")
# And this one for a class, at once.
_OF_ESTIMATORS = "sklearn.base"
_DISTUTILS = "distutils"


@contextmanager
def spared_imports() -> Iterator[None]:
    """Has importing mxnet go without them meanwhile, where they are installed.

    Who imports them later gets the packages themselves. One that is imported already stays.
    """
    made: List[ModuleType] = [_Deferred(name) for name in _OF_FUNCTIONS]
    made.append(ModuleType(_OF_ESTIMATORS))
    made[-1].__dict__["BaseEstimator"] = _Estimator
    stand_ins = {
        each.__name__: each
        for each in made
        if each.__name__ not in sys.modules and _installed(each.__name__)
    }
    stand_ins.update(_pythons_distutils())
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            _give_way(name, stand_in)


def has_distutils() -> bool:
    """Whether MXNet can be imported: Python 3.12 has none of its own, but for setuptools'."""
    return bool(PathFinder.find_spec(_DISTUTILS) or importlib.util.find_spec(_DISTUTILS))


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name.split(".")[0]) is not None
    except ValueError:  # a module that a script has made itself
        return False


def _pythons_distutils() -> Dict[str, ModuleType]:
    """What MXNet imports of it, where Python has it and nothing else has imported one."""
    found = PathFinder.find_spec(_DISTUTILS)
    if _DISTUTILS in sys.modules or found is None or found.loader is None:
        return {}
    package = sys.modules[_DISTUTILS] = importlib.util.module_from_spec(found)
    found.loader.exec_module(package)
    return {_DISTUTILS: package, "distutils.version": importlib.import_module("distutils.version")}


class _Deferred(ModuleType):
    """Imports the module of its name when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        _give_way(self.__name__, self)
        return getattr(importlib.import_module(self.__name__), name)


def _give_way(name: str, stand_in: ModuleType) -> None:
    if sys.modules.get(name) is stand_in:
        del sys.modules[name]


class _Estimator:
    """Base of FeedForward, before which comes scikit-learn's when the first one is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        _add_base(cls)
        return super().__new__(cls)


def _add_base(cls: type) -> None:
    try:
        base = importlib.import_module(_OF_ESTIMATORS).BaseEstimator
    except ImportError:  # without which MXNet does as well
        return
    for each in cls.__mro__:
        if each.__bases__ == (_Estimator,):
            each.__bases__ = (base, _Estimator)
            super(each, each).__init_subclass__()  # type: ignore[arg-type] # it is one
