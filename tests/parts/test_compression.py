"""A method's options: Python and the core (csrc/codecs/method_options.h) agree on them."""
from __future__ import annotations

import dataclasses
import math
import warnings
from pathlib import Path
from typing import Any, Iterator

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import KVStoreError, OptionError, Options, P3Worker, _core, compression
from kvstore_ext.compression import TYPES
from kvstore_ext.compression.momentum import take_momentum
from kvstore_ext.compression.options import specification
from kvstore_ext.copies import packed, resume
from kvstore_ext.methods import OneBit, SlimDP, TernGrad

SHAPE = (3, 4)


def numbers() -> Iterator[tuple[str, _core.MethodOption]]:
    """The options of all methods that are numbers."""
    for name, kind in TYPES.items():
        for option in kind.core_options():
            if not option.words:
                yield name, option


NUMBERS = list(numbers())
# With which every option of a method may have any value of its range, but for core_delay.
BASE: dict[str, dict[str, Any]] = {"slim_dp": {"alpha": 1.0, "beta": 0.0, "q": 1 << 31}}


def told(name: str, option: str, value: Any) -> None:
    """Has the core read a specification in which one option has a value of the test's."""
    method = TYPES[name](**BASE.get(name, {}))
    text = specification(name, {**method.core_values(SHAPE), option: value})
    if name == "slim_dp":
        _core.SlimModel(text, 0)
    else:
        _core.Codec(text, 2)


def near(option: _core.MethodOption) -> tuple[list[float], list[float]]:
    """Values at the ends of a range, and those right beyond."""
    if option.whole:
        ends = [int(option.least), int(option.most)]
        return list(ends), [ends[0] - 1, ends[1] + 2]
    tiny, huge = 2.0**-149, 3e38
    inside = [tiny if option.above else option.least]
    outside = [option.least if option.above else -tiny, math.nan, math.inf, 1e39, 1e-50]
    if option.most == math.inf:
        return [*inside, huge], outside
    return [*inside, option.most], [*outside, np.nextafter(option.most, math.inf)]


@pytest.mark.parametrize(("name", "option"), NUMBERS, ids=lambda what: getattr(what, "name", what))
def test_a_range_is_the_same_for_python_and_the_core(
    name: str, option: _core.MethodOption
) -> None:
    kind, base = TYPES[name], BASE.get(name, {})
    inside, outside = near(option)
    if option.name == "core_delay":
        inside.pop()  # it is below q
    # Python's flags are no numbers, and onebit's buckets have a range of their own.
    alike = not isinstance(getattr(kind(), option.name), bool) and kind is not OneBit
    for value in inside:
        told(name, option.name, value)
        if alike:
            assert getattr(kind(**{**base, option.name: value}), option.name) == value
    for value in outside:
        with pytest.raises(ValueError, match=option.name) as core:
            told(name, option.name, value)
        assert option.allowed in str(core.value)
        if alike:
            with pytest.raises(OptionError, match=f"{name}: {option.name} is") as python:
                kind(**{**base, option.name: value})
            assert option.allowed in str(python.value)


@pytest.mark.parametrize("name", TYPES)
def test_the_core_is_told_every_option_that_it_knows(name: str) -> None:
    kind = TYPES[name]
    method = kind()
    fields = {field.name for field in dataclasses.fields(kind)}
    core = [option.name for option in kind.core_options()]
    assert set(core) <= fields
    words = method.specification(SHAPE).split()
    assert words[0] == name
    assert [word.split("=")[0] for word in words[1:]] == core


def test_words_are_those_of_the_core() -> None:
    assert TYPES["qsgd"].rules()["norm"].allowed == "l2 or max"
    for norm in ("l2", "max"):
        text = compression.parse({"type": "qsgd", "norm": norm}).specification(SHAPE)
        assert f"norm={norm}" in text
        _core.Codec(text, 2)


def test_there_are_no_options_of_a_codec_that_is_not() -> None:
    with pytest.raises(ValueError, match="no compression '3bit'; there are terngrad, qsgd"):
        _core.codec_options("3bit")


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="terngrad"):
        compression.register(TernGrad)


def test_options_of_the_environment_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVSTORE_EXT_OPTIONS", '{"timeout": 7, "clip_sigma": 3, "bits": 4}')
    assert compression.options_of_environment() == {"clip_sigma": 3, "bits": 4}
    assert Options.from_environment(compression.option_names()).timeout == 7
    with pytest.raises(OptionError, match=r"'clip_sigma'; the options are slice_bytes"):
        Options.from_environment()
    with pytest.raises(OptionError, match=r"'zoo'; the .*a compression's exclude, .*clip_sigma"):
        Options.from_dict({"zoo": 1}, compression.option_names())


def test_options_of_a_compression_that_a_store_does_not_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KVSTORE_EXT_OPTIONS", '{"slice_bytes": 100, "clip_sigma": 3}')
    plain, compressed = P3Worker(), P3Worker()
    unused = "has options of a compression, clip_sigma, but the store .* compresses nothing"
    with pytest.warns(UserWarning, match=unused):
        plain.init(0, mx.nd.ones((3,)))
    compressed.set_gradient_compression({"type": "terngrad"})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        compressed.init(0, mx.nd.ones((3,)))
    plain.close()
    compressed.close()


def test_a_misspelt_option_is_answered_with_the_right_one() -> None:
    known = compression.option_names()
    for written, meant in (("slice_byte", "slice_bytes"), ("clip_sigmaa", "clip_sigma")):
        with pytest.raises(OptionError, match=f"no option '{written}'.*; did you mean '{meant}'"):
            Options.from_dict({written: 1}, known)
    with pytest.raises(OptionError, match=r"no option 'clip_sigmaa'.*; did you mean 'clip_sigma'"):
        compression.parse({"type": "terngrad", "clip_sigmaa": 1})


def test_a_method_says_what_it_takes() -> None:
    def said(attribute: str) -> dict[str, Any]:
        return {name: getattr(kind, attribute) for name, kind in TYPES.items()}

    alone = {"2bit", "slim_dp"}
    for name, dtypes in said("dtypes").items():
        assert dtypes == ((np.float32,) if name in alone else (np.float32, np.float16))
    assert [name for name, plain in said("sparse_travels_plain").items() if not plain] == ["2bit"]
    assert [name for name, applies in said("applies_momentum").items() if applies] == ["dgc"]
    assert not SlimDP().exclude_last
    assert TernGrad(exclude_last=True).exclude_last
    assert issubclass(OptionError, KVStoreError)


def test_numbers_of_numpy_are_numbers() -> None:
    assert TYPES["2bit"](**{"threshold": 0.5}) == compression.parse(
        {"type": "2bit", "threshold": np.float32(0.5)}
    )
    assert compression.parse({"type": "qsgd", "bits": np.int64(4)}).bits == 4
    with pytest.raises(OptionError, match="qsgd: bits is 40; it must be a whole number"):
        compression.parse({"type": "qsgd", "bits": np.int64(40)})


def test_a_momentum_is_not_left_behind_by_a_compression_that_comes_later() -> None:
    store = P3Worker()
    store.adopt_optimizer(mx.optimizer.SGD(momentum=0.9))
    store.set_gradient_compression({"type": "terngrad"})
    with pytest.raises(KVStoreError, match="comes too late: the store has an optimizer"):
        store.set_gradient_compression({"type": "dgc"})
    store.close()


@pytest.mark.parametrize(("saved", "later"), [(0.9, 0.0), (0.0, 0.8), (0.9, 0.8)])
def test_a_run_that_goes_on_has_its_own_momentum(saved: float, later: float) -> None:
    """And the weight decay that belongs to it, whatever the script says now."""
    before = mx.optimizer.SGD(momentum=saved, wd=1e-4)
    assert take_momentum(before, "dgc") == saved
    now = mx.optimizer.SGD(momentum=later, wd=1e-4)
    take_momentum(now, "dgc")
    resume(now, packed(before))
    assert take_momentum(now, "dgc") == saved
    assert now.wd == before.wd


def test_what_another_model_carried_over_changes_nothing() -> None:
    def store_of(sizes: tuple[int, ...]) -> P3Worker:
        store = P3Worker()
        store.set_gradient_compression({"type": "onebit"})
        for number, size in enumerate(sizes):
            store.init(number, mx.nd.zeros((size,)))
            store.push(number, mx.nd.arange(size))
        return store

    store, other = store_of((10, 20)), store_of((10, 30))
    carried = store.method.fetch()
    before = [store.method.of_worker(number).tolist() for number in range(2)]
    assert any(before[0])
    store.push(0, mx.nd.arange(10) ** 2)
    changed = store.method.of_worker(0).tolist()
    assert changed != before[0]
    with pytest.raises(KVStoreError, match="key 1: the states are those of another model"):
        store.method.put_back(other.method.fetch())
    assert store.method.of_worker(0).tolist() == changed
    store.method.put_back(carried)
    assert store.method.of_worker(0).tolist() == before[0]
    store.close()
    other.close()


@pytest.mark.parametrize("name", ["terngrad", "onebit", "dgc"])
def test_states_are_loaded_beside_a_key_without_elements(name: str, tmp_path: Path) -> None:
    with mx.util.np_shape(True):
        store = P3Worker(Options())
        store.set_gradient_compression({"type": name})
        store.set_optimizer(mx.optimizer.SGD())
        values = [mx.nd.ones((5,)), mx.nd.ones((0,))]
        for key, value in enumerate(values):
            store.broadcast(key, value, out=value)
        for _ in range(2):
            for key, value in enumerate(values):
                store.pushpull(key, mx.nd.ones(value.shape), out=value)
            store.save_optimizer_states(str(tmp_path / "states"))
            store.load_optimizer_states(str(tmp_path / "states"))
        store.close()


def test_zeros_are_a_share_of_what_was_compressed() -> None:
    store = P3Worker()
    store.set_gradient_compression({"type": "dgc", "ratio": 0.25, "exclude": [1]})
    for number in range(2):
        store.init(number, mx.nd.zeros((1000,)))
        store.push(number, mx.nd.arange(1, 1001))
    mx.nd.waitall()
    assert store.stats()["zeros"] == 0.75
    store.close()


@pytest.mark.parametrize("key", ["weight", "bias"])
def test_a_key_that_travels_plain_may_not_have_nan_either(key: str) -> None:
    store = P3Worker()
    store.set_gradient_compression(
        {"type": "terngrad", "non_finite": "raise", "exclude": ["bias"]}
    )
    out = mx.nd.zeros((10,))
    store.init(key, out)
    store.pushpull(key, mx.nd.full((10,), math.nan), out=out)
    with pytest.raises(mx.MXNetError, match=f"the gradient of key '{key}'"):
        out.wait_to_read()
    with pytest.raises(KVStoreError):
        store.close()


@pytest.mark.parametrize(
    ("exclude", "in_vain"),
    [(["bias", 3], "[]"), (["bias", "3"], "['3']"), (["*_bias", 4, "b*"], "['*_bias', 4]")],
)
def test_what_excludes_no_key_is_warned_of(exclude: list[Any], in_vain: str) -> None:
    store = P3Worker()
    store.set_gradient_compression({"type": "terngrad", "exclude": exclude})
    keys: list[Any] = ["weight", 3, "bias"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for key in keys:  # a script may begin a key when another's is pushed already
            store.init(key, mx.nd.zeros((10,)))
            store.push(key, mx.nd.ones((10,)))
        assert not caught
        for _ in range(2):
            store.push(keys, [mx.nd.ones((10,))] * 3)
    store.close()
    said = [str(warning.message) for warning in caught]
    unknown = "; parameters' names are not known, which adopt_optimizer tells"
    assert said == ([] if in_vain == "[]" else [
        f"terngrad: exclude has {in_vain}, of which there is no key in the store{unknown}"
    ])


def test_what_excludes_no_parameter_is_warned_of() -> None:
    store = P3Worker()
    store.set_gradient_compression({"type": "terngrad", "exclude": ["*_bias", "out*"]})
    names = {0: "in_weight", 1: "in_bias"}
    store.adopt_optimizer(mx.optimizer.SGD(param_idx2name=names))
    for key in names:
        store.init(key, mx.nd.zeros((10,)))
    store.push([0, 1], [mx.nd.ones((10,))] * 2)
    with pytest.warns(UserWarning, match=r"exclude has \['out\*'\], of which .* in the store$"):
        store.push([0, 1], [mx.nd.ones((10,))] * 2)
    store.close()
