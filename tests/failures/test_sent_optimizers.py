"""Nothing that anybody sends as an optimizer runs code on a server, or reads memory there."""

from __future__ import annotations

import base64
import collections
import json
import os
import pickle
import subprocess
import sys
import types
from typing import Any

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext.optimizer.optimizer_format import pack_optimizer, unpack_optimizer

OPTIMIZERS = sorted(mx.optimizer.Optimizer.opt_registry)


class TrustedOptimizer(mx.optimizer.SGD):
    """An optimizer of a module that the operator trusts."""


@pytest.fixture
def trusted_module(monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of optimizers that has imported this and that, as modules do."""
    module = types.ModuleType("trusted_optimizers")
    module.os = os  # type: ignore[attr-defined]
    module.system = os.system  # type: ignore[attr-defined]
    module.Popen = subprocess.Popen  # type: ignore[attr-defined]
    TrustedOptimizer.__module__ = module.__name__
    module.TrustedOptimizer = TrustedOptimizer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.__name__


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
    ("kvstore_ext.optimizer.optimizer_format", "importlib.sys.exit"),
    ("kvstore_ext.optimizer.optimizer_format", "pack_optimizer"),
    ("__main__", "Anything"),
    ("trusted_optimizers", "os.system"),
    ("trusted_optimizers", "system"),
    ("trusted_optimizers", "Popen"),
    ("trusted_optimizers", "TrustedOptimizer.__init__"),
    ("trusted_optimizers.os", "system"),
]


@pytest.mark.parametrize(("module", "name"), ATTACKS)
def test_what_is_no_optimizer_or_scheduler_is_refused(
    trusted_module: str, module: str, name: str
) -> None:
    text = json.dumps(["object", module, name, ["dict"]])
    with pytest.raises(kvstore_ext.KVStoreError) as caught:
        unpack_optimizer(text, (trusted_module,))
    assert f"refused to load {module}.{name}" in str(caught.value)


def test_nothing_is_imported_to_look_for_a_name() -> None:
    with pytest.raises(kvstore_ext.KVStoreError, match="refused to load"):
        unpack_optimizer('["object", "mxnet.contrib.svrg_optimization", "SGD", ["dict"]]', ())
    assert "mxnet.contrib.svrg_optimization" not in sys.modules


@pytest.mark.parametrize("kind", ["array", "scalar", "NDArray"])
@pytest.mark.parametrize("dtype", ["O", "|O8", "V8", "U4", "M8[s]", "f4,f4", "2f4", [["a", "O"]]])
def test_an_array_of_anything_but_numbers_is_refused(kind: str, dtype: Any) -> None:
    pointer = base64.b64encode(id(os).to_bytes(8, "little")).decode()
    with pytest.raises(kvstore_ext.KVStoreError, match="must be of numbers"):
        unpack_optimizer(json.dumps([kind, dtype, [1], pointer]), ())


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(pickle.dumps((mx.optimizer.SGD(), {}))).decode(),
        "",
        "{}",
        "[]",
        "[3]",
        '["list"',
        '["eval", "1"]',
        '["again", 0]',
        '["again", -1]',
        '["set", ["list"]]',
        '["dict", [["list"], 1]]',
        '["dict", [1]]',
        '["bytes", 3]',
        '["object", "mxnet.lr_scheduler"]',
        '["object", ["list"], "SGD", null]',
        '["object", "mxnet.optimizer.optimizer", "SGD", 3]',
        '["array", "<f4", [1000000000000], ""]',
        '["array", "<f4", [-1, 0], ""]',
        '["array", "<f4", [1], "AA=="]',
        "[" * 100000,
        '["list", ' * 100000,
    ],
    ids=lambda text: text[:40],
)
def test_a_text_of_no_optimizer_is_refused(text: str) -> None:
    with pytest.raises(kvstore_ext.KVStoreError, match="a worker sent"):
        unpack_optimizer(text, ())


SGD = '["object", "mxnet.optimizer.optimizer", "SGD", ["dict"]]'


@pytest.mark.parametrize(
    "text",
    ["5", SGD, f'["tuple", {SGD}]', '["tuple", ["dict"], ["dict"]]', f'["tuple", {SGD}, ["list"]]'],
)
def test_something_else_than_an_optimizer_is_refused(text: str) -> None:
    with pytest.raises(kvstore_ext.KVStoreError, match="it must be an optimizer and a dict"):
        unpack_optimizer(text, ())


def carrying(value: Any) -> mx.optimizer.Optimizer:
    """An optimizer with one more attribute."""
    optimizer = mx.optimizer.SGD()
    optimizer.carried = value
    return optimizer


def arrived(value: Any) -> Any:
    """An optimizer's attribute, as it is on a server."""
    return unpack_optimizer(pack_optimizer(carrying(value)), ())[0].carried


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, "text", None, True, b"bytes", 1 + 2j, {3, 4}, frozenset([5])], (1, 2): 0},
        [10**40, 0.1, -0.0, 5e-324, float("inf")],
        collections.OrderedDict(a=1),
        np.float32(0.1),
        np.float64(0.1),
        np.int64(7),
        np.bool_(True),
    ],
    ids=repr,
)
def test_plain_values_arrive(value: Any) -> None:
    found = arrived(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint8", "int64", "bool", "complex64"]
)
def test_arrays_of_numbers_arrive(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype).T
    found = arrived(array)
    assert found.dtype == array.dtype
    assert (found == array).all()
    found += found  # it is the server's own
    assert arrived(array[:0]).shape == (0, 2)
    if dtype not in ("bool", "complex64"):
        loaded = arrived(mx.nd.array(array, dtype=dtype))
        assert loaded.dtype == array.dtype
        assert (loaded.asnumpy() == array).all()


def test_what_has_two_names_has_them_on_the_server() -> None:
    table: dict[str, Any] = {"of": np.zeros(2)}
    table["itself"] = table
    found = arrived([table, table["of"], table])
    assert found[0] is found[2] is found[0]["itself"]
    assert found[1] is found[0]["of"]


@pytest.mark.parametrize("value", [lambda: None, os, os.system, np.array([None]), range(3)])
def test_what_is_no_data_does_not_leave(value: Any) -> None:
    with pytest.raises(TypeError):
        pack_optimizer(carrying(value))


def test_an_object_of_another_class_leaves_and_is_refused() -> None:
    packed = pack_optimizer(carrying(mx.gluon.Parameter("p", dtype="float32")))
    with pytest.raises(kvstore_ext.KVStoreError, match=r"load mxnet\.gluon\.parameter\.Parameter:"):
        unpack_optimizer(packed, ())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_arrives(name: str) -> None:
    scheduler = mx.lr_scheduler.FactorScheduler(step=np.int64(3), factor=0.5)
    optimizer = mx.optimizer.create(
        name, learning_rate=np.float32(0.5), lr_scheduler=scheduler, param_idx2name={0: "weight"}
    )
    optimizer.set_wd_mult({"weight": 0.0})
    optimizer._update_count(3)
    loaded, factors = unpack_optimizer(pack_optimizer(optimizer), ())
    assert type(loaded) is type(optimizer)
    found, sent = vars(loaded), {**vars(optimizer), "lr": scheduler(1), "lr_scheduler": None}
    assert found == sent  # rank 0 says what its schedule comes to
    assert loaded._index_update_count is loaded._all_index_update_counts[0]
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
    found = arrived(scheduler)
    assert [found(step) for step in range(1, 9)] == [scheduler(step) for step in range(1, 9)]


def test_a_class_of_a_trusted_module_arrives(trusted_module: str) -> None:
    packed = pack_optimizer(TrustedOptimizer(learning_rate=0.25))
    assert unpack_optimizer(packed, (trusted_module,))[0].lr == 0.25
    with pytest.raises(kvstore_ext.KVStoreError, match="--trust trusted_optimizers"):
        unpack_optimizer(packed, ())
