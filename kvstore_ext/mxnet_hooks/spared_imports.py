"""Packages that MXNet imports, and that hardly any script asks it for: they come once one does.

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

from .plain_distutils import plain_distutils

# MXNet asks these for functions, when it calls them.
_OF_FUNCTIONS = ("scipy.stats", "requests")
# And this one for a class, at once.
_OF_ESTIMATORS = "sklearn.base"


@contextmanager
def spared_imports() -> Iterator[None]:
    """While it lasts, importing mxnet does not import these, where they are installed.

    MXNet's modules have stand-ins, which import a package when something of it is asked for.
    Whoever else imports it gets the package itself. One that is imported already stays. Nor does
    all of setuptools come.
    """
    stand_ins = [*map(_Deferred, _OF_FUNCTIONS), _DeferredEstimators(_OF_ESTIMATORS)]
    stand_ins = [each for each in stand_ins if _can_wait(each.__name__)]
    sys.modules.update({each.__name__: each for each in stand_ins})
    try:
        with plain_distutils():
            yield
    finally:
        for each in stand_ins:
            _give_way(each)
        # Scripts have relied on what came with requests, as `urllib.request` does by its name.
        importlib.import_module("urllib.request")


def _can_wait(name: str) -> bool:
    package = name.split(".")[0]
    try:
        if name in sys.modules or importlib.util.find_spec(package) is None:
            return False
        # Before it imported its parts by their names, scripts relied on those that MXNet imported.
        return package != "scipy" or "__getattr__" in vars(importlib.import_module(package))
    except (ImportError, ValueError):  # it is broken, or a module that a script has made itself
        return False


class _Deferred(ModuleType):
    """Imports the module of its name when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        _give_way(self)
        return getattr(importlib.import_module(self.__name__), name)


def _give_way(stand_in: ModuleType) -> None:
    if sys.modules.get(stand_in.__name__) is stand_in:
        sys.modules.pop(stand_in.__name__, None)


class _Estimator:
    """Base of FeedForward, before which comes scikit-learn's when the first one is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        _add_base(cls)
        return super().__new__(cls)


class _DeferredEstimators(_Deferred):
    BaseEstimator = _Estimator

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # by which an import would find out whether it is a package
            raise AttributeError(name)
        return super().__getattr__(name)


def _add_base(cls: type) -> None:
    try:
        base = importlib.import_module(_OF_ESTIMATORS).BaseEstimator
    except ImportError:  # without which MXNet does as well
        return
    classes: List[Any] = [each for each in cls.__mro__ if issubclass(each, _Estimator)]
    *own, first, _ = classes
    if first.__bases__ == (_Estimator,):
        first.__bases__ = (base, _Estimator)
        for each in (first, *own[::-1]):
            super(each, each).__init_subclass__()
