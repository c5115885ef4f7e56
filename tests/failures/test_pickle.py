"""Nothing that a worker can send as an optimizer runs code on a server."""

from __future__ import annotations

import base64
import collections
import os
import pickle
import sys
import types
from pathlib import Path
from typing import Any

import kvstore_ext  # noqa: F401
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext.optimizer.slice_optimizer import pack_optimizer, unpack_optimizer
from kvstore_ext.optimizer.trusted_pickle import load_trusted

OPTIMIZERS = sorted(mx.optimizer.Optimizer.opt_registry)


class TrustedOptimizer(mx.optimizer.SGD):
    """An optimizer of a module that the operator trusts."""


@pytest.fixture
def trusted_module(monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of optimizers that has imported this and that, as modules do."""
    module = types.ModuleType("trusted_optimizers")
    module.os = os  # type: ignore[attr-defined]
    module.system = os.system  # type: ignore[attr-defined]
    module.Popen = __import__("subprocess").Popen  # type: ignore[attr-defined]
    TrustedOptimizer.__module__ = module.__name__
    module.TrustedOptimizer = TrustedOptimizer  # type: ignore[attr-defined]
    # Python 2 had a module of that name, which protocol 0 would take for today's subprocess.
    commands = types.ModuleType("commands")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, commands.__name__, commands)
    return module.__name__


def call(module: str, name: str, *arguments: str) -> bytes:
    """A pickle that calls module.name when it is loaded; protocol 4 resolves dots in the name."""
    return b"".join(
        [
            pickle.PROTO + b"\x04",
            *(pickle.SHORT_BINUNICODE + bytes([len(t)]) + t.encode() for t in (module, name)),
            pickle.STACK_GLOBAL,
            pickle.MARK,
            *(pickle.SHORT_BINUNICODE + bytes([len(t)]) + t.encode() for t in arguments),
            pickle.TUPLE + pickle.REDUCE + pickle.STOP,
        ]
    )


def old_call(module: str, name: str, *arguments: str) -> bytes:
    """The same in protocol 0, in which Python 2's names of modules may be translated."""
    texts = "".join(f"V{text}\n" for text in arguments)
    return f"c{module}\n{name}\n({texts}tR.".encode()


ATTACKS = [
    ("os", "system"),
    ("posix", "system"),
    ("nt", "system"),
    ("subprocess", "Popen"),
    ("commands", "getoutput"),
    ("builtins", "eval"),
    ("__builtin__", "eval"),
    ("builtins", "getattr"),
    ("builtins", "__import__"),
    ("builtins", "set.__class__"),
    ("builtins", "bytearray"),
    ("importlib", "import_module"),
    ("operator", "attrgetter"),
    ("functools", "partial"),
    ("copyreg", "_reconstructor"),
    ("pickle", "loads"),
    ("_pickle", "loads"),
    ("collections", "OrderedDict.fromkeys"),
    ("collections", "abc.sys.modules"),
    ("numpy", "load"),
    ("numpy", "core.multiarray.os.system"),
    ("numpy.core.multiarray", "os.system"),
    ("numpy.core.multiarray", "fromfile"),
    ("numpy.testing._private.utils", "runstring"),
    ("mxnet", "nd.load"),
    ("mxnet", "optimizer.optimizer.pickle.loads"),
    ("mxnet.ndarray", "load"),
    ("mxnet.optimizer", "optimizer.pickle.loads"),
    ("mxnet.optimizer.optimizer", "pickle.loads"),
    ("mxnet.optimizer.optimizer", "Optimizer.create_optimizer"),
    ("mxnet.optimizer.optimizer", "Updater"),
    ("mxnet.optimizer.optimizer", "SGD.__init__.__globals__"),
    ("mxnet.lr_scheduler", "LRScheduler.__subclasses__"),
    ("mxnet.libinfo", "os.system"),
    ("mxnet.base", "ctypes.CDLL"),
    ("mxnet.kvstore.kvstore_server", "KVStoreServer"),
    ("mxnet.no_such_module", "SGD"),
    ("mxnetwork", "SGD"),
    ("kvstore_ext.optimizer.slice_optimizer", "base64.os.system"),
    ("kvstore_ext.optimizer.trusted_pickle", "load_trusted"),
    ("__main__", "Anything"),
    ("trusted_optimizers", "os.system"),
    ("trusted_optimizers", "system"),
    ("trusted_optimizers", "Popen"),
    ("trusted_optimizers", "TrustedOptimizer.__init__"),
    ("trusted_optimizers.os", "system"),
]


@pytest.mark.parametrize(("module", "name"), ATTACKS)
@pytest.mark.parametrize("make", [call, old_call])
def test_a_call_of_anything_else_is_refused(
    trusted_module: str, tmp_path: Path, make: Any, module: str, name: str
) -> None:
    trace = tmp_path / "somebody was here"
    with pytest.raises(pickle.UnpicklingError) as caught:
        load_trusted(make(module, name, f"touch '{trace}'"), (trusted_module, "commands"))
    assert f"{module}.{name}" in str(caught.value)
    assert not trace.exists()


def test_the_pickles_of_this_test_are_dangerous(tmp_path: Path) -> None:
    for number, (make, module, name) in enumerate(
        [
            (call, "os", "system"),
            (call, "mxnet.libinfo", "os.system"),
            (old_call, "posix", "system"),
            (old_call, "commands", "getoutput"),
        ]
    ):
        trace = tmp_path / str(number)
        pickle.loads(make(module, name, f"touch '{trace}'"))
        assert trace.exists()


def test_nothing_is_imported_to_look_for_a_name() -> None:
    with pytest.raises(pickle.UnpicklingError):
        load_trusted(call("mxnet.contrib.svrg_optimization", "SGD"))
    assert "mxnet.contrib.svrg_optimization" not in sys.modules


@pytest.mark.parametrize("dtype", ["O", "O8", "V8", "U4", "M8[s]", "f4,f4", "object"])
def test_arrays_of_anything_but_numbers_are_refused(dtype: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match="must be of numbers"):
        load_trusted(call("numpy", "dtype", dtype))


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, "text", None, True, b"bytes", 1 + 2j, {3, 4}, frozenset([5])]},
        collections.OrderedDict(a=1),
        collections.defaultdict(set, a={1}),
        range(3),
        slice(1, 2),
        np.float32(0.1),
        np.float64(0.1),
        np.int64(7),
    ],
)
def test_plain_values_arrive(value: Any) -> None:
    loaded = load_trusted(pickle.dumps(value, 4))
    assert loaded == value
    assert type(loaded) is type(value)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint8", "int64", "bool"]
)
def test_arrays_of_numbers_arrive(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype).T
    loaded = load_trusted(pickle.dumps(array, 4))
    assert loaded.dtype == array.dtype
    assert (loaded == array).all()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_arrives(name: str) -> None:
    scheduler = mx.lr_scheduler.FactorScheduler(step=np.int64(3), factor=0.5)
    optimizer = mx.optimizer.create(name, learning_rate=np.float32(0.5), lr_scheduler=scheduler)
    optimizer.set_wd_mult({"weight": 0.0})
    loaded, factors = unpack_optimizer(pack_optimizer(optimizer), ())
    assert type(loaded) is type(optimizer)
    assert loaded.wd_mult == {"weight": 0.0}
    assert loaded.lr_scheduler is None  # rank 0 says what it comes to
    assert loaded.lr == scheduler(0)
    assert factors == {}


@pytest.mark.parametrize(
    "scheduler",
    [
        mx.lr_scheduler.FactorScheduler(step=3),
        mx.lr_scheduler.MultiFactorScheduler(step=[3, 5]),
        mx.lr_scheduler.PolyScheduler(max_update=9),
        mx.lr_scheduler.CosineScheduler(max_update=9),
    ],
    ids=lambda scheduler: type(scheduler).__name__,
)
def test_every_scheduler_arrives(scheduler: mx.lr_scheduler.LRScheduler) -> None:
    loaded = load_trusted(pickle.dumps(scheduler))
    assert [loaded(step) for step in range(1, 9)] == [scheduler(step) for step in range(1, 9)]


def test_a_class_of_a_trusted_module_arrives(trusted_module: str) -> None:
    packed = pack_optimizer(TrustedOptimizer(learning_rate=0.25))
    assert unpack_optimizer(packed, (trusted_module,))[0].lr == 0.25
    with pytest.raises(pickle.UnpicklingError, match="--trust trusted_optimizers"):
        unpack_optimizer(packed, ())


@pytest.mark.parametrize("packed", [5, (mx.optimizer.SGD(),), ({}, {}), (mx.optimizer.SGD(), [])])
def test_something_else_than_an_optimizer_is_refused(packed: Any) -> None:
    text = base64.b64encode(pickle.dumps(packed)).decode()
    with pytest.raises(pickle.UnpicklingError, match="must be an optimizer and a dict"):
        unpack_optimizer(text, ())
