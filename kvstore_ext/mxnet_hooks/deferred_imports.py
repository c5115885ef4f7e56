"""Packages that MXNet imports, and that hardly any script asks it for: imported once one does.

MXNet imports scikit-learn for the base of FeedForward alone, SciPy's statistics for quantization
and for its own tests, and requests for downloads.
"""
from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Iterator, List

# MXNet asks these for functions, when it calls them.
_OF_FUNCTIONS = ("scipy.stats", "requests")
# And this one for a class, at once.
_OF_ESTIMATORS = "sklearn.base"


@contextmanager
def deferred_imports() -> Iterator[None]:
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
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for stand_in in stand_ins.values():
            _give_way(stand_in)


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name.split(".")[0]) is not None
    except ValueError:  # a module that a script has made itself
        return False


class _Deferred(ModuleType):
    """Imports the module of its name when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        _give_way(self)
        return getattr(importlib.import_module(self.__name__), name)


def _give_way(stand_in: ModuleType) -> None:
    if sys.modules.get(stand_in.__name__) is stand_in:
        del sys.modules[stand_in.__name__]


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
