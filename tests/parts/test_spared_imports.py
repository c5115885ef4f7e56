"""Packages that importing MXNet takes along, and that hardly any script asks it for."""
from __future__ import annotations

import sys

from tests.support.processes import run_python

IMPORTED = """
import sys

import kvstore_ext
import mxnet as mx


def has(*names):
    print(*(name in sys.modules for name in names))


has("sklearn", "sklearn.base", "scipy.stats", "requests")
"""
ESTIMATOR = """
network = mx.sym.SoftmaxOutput(mx.sym.var("data"), name="softmax")


class Own(mx.model.FeedForward):
    pass


model = Own(network, num_epoch=3)
has("sklearn.base")

from sklearn.base import BaseEstimator, clone

another = mx.model.FeedForward(network, num_epoch=4)
print(isinstance(model, BaseEstimator), isinstance(another, BaseEstimator))
print(model.get_params()["num_epoch"], clone(another).num_epoch)
"""
FUNCTIONS = """
print(f"{mx.contrib.quantization.stats.entropy([0.5, 0.5]):.3f}", mx.test_utils.ss.norm.cdf(0))
has("scipy.stats")

import requests
from unittest import mock

with mock.patch("requests.get", side_effect=RuntimeError("asked")):
    try:
        mx.gluon.utils.download("http://here", "none", retries=0)
    except RuntimeError as error:
        print(error)
"""
PARTS = """
import scipy
import urllib

print(scipy.stats.norm.cdf(0), callable(urllib.request.urlopen))
"""
DISTUTILS = """
has("setuptools", "distutils")

import distutils
import setuptools

print(mx.numpy_op_fallback.StrictVersion("1.10") > "1.9")
has("setuptools", "distutils")
"""
WITHOUT = """
sys.modules["sklearn.base"] = None
print(mx.model.FeedForward(mx.sym.var("data"), num_epoch=2).num_epoch)
"""
OWN = """
import sys
from types import ModuleType

import requests

sys.modules["sklearn"] = own = ModuleType("sklearn")
own.base = sys.modules["sklearn.base"] = ModuleType("sklearn.base")
own.base.BaseEstimator = type("Own", (), {})

import kvstore_ext
import mxnet as mx

print(mx.test_utils.requests is requests, issubclass(mx.model.FeedForward, own.base.BaseEstimator))
print("scipy.stats" in sys.modules)

import scipy.stats

print(scipy.stats is not mx.test_utils.ss)
"""


def lines(*parts: str) -> list[str]:
    ended = run_python("-c", "".join(parts))
    assert "Setuptools" not in ended.stderr  # which warns where another distutils was there
    return ended.stdout.splitlines()


def test_the_first_feed_forward_has_scikit_learns_base() -> None:
    assert lines(IMPORTED, ESTIMATOR) == [
        "False False False False", "True", "True True", "3 4",
    ]  # fmt: skip


def test_mxnets_own_modules_get_functions() -> None:
    _, *first, _, last = lines(IMPORTED, FUNCTIONS)  # between them, that it downloads
    assert [*first, last] == ["0.693 0.5", "True", "asked"]


def test_a_script_has_parts_that_only_mxnet_has_imported() -> None:
    assert lines(IMPORTED, PARTS)[1:] == ["0.5 True"]


def test_setuptools_comes_once_a_script_wants_it() -> None:
    needed = sys.version_info >= (3, 12)  # which has no other distutils
    assert lines(IMPORTED, DISTUTILS)[1:] == [f"{needed} {needed}", "True", "True True"]


def test_a_feed_forward_does_without_scikit_learn_as_in_mxnet() -> None:
    assert lines(IMPORTED, WITHOUT)[1:] == ["2"]


def test_what_a_script_has_imported_or_made_stays() -> None:
    assert lines(OWN) == ["True True", "False", "True"]
