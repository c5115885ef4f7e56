"""A script's mistake becomes a Python exception with both values, before anything is sent."""

from __future__ import annotations

import dataclasses
from typing import Callable, Iterator

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import ArrayMismatch, KeyNotInitialised, KVStoreError, OptionError, Options
from kvstore_ext.errors import ClusterError, of_job

from tests.support.cluster import Cluster
from tests.support.happened import Happenings

dense = mx.nd.ones


def row_sparse(shape: tuple[int, ...]) -> mx.nd.NDArray:
    return mx.nd.ones(shape).tostype("row_sparse")


@pytest.fixture
def store() -> Iterator[kvstore_ext.P3Worker]:
    """A store in this process with one dense key of each kind of name."""
    store = kvstore_ext.P3Worker(Options(silence=20, patience=20))
    store.init([3, "weight"], [dense((2, 3)), dense((2, 3))])
    mx.nd.waitall()
    yield store
    store.close()


@pytest.fixture
def happenings(store: kvstore_ext.P3Worker) -> Happenings:
    """What this store does from now on."""
    return Happenings(store)


ON_EVERY_CALL = [
    pytest.param(
        lambda call: call(9, dense((2, 3))),
        KeyNotInitialised,
        ["9", "never initialised", "3", "weight"],
        id="unknown-key",
    ),
    pytest.param(
        lambda call: call("3", dense((2, 3))), KeyNotInitialised, ["'3'"], id="number-as-text"
    ),
    pytest.param(
        lambda call: call(9, row_sparse((2, 3))),
        KeyNotInitialised,
        ["9", "never initialised"],
        id="unknown-sparse-key",
    ),
    pytest.param(
        lambda call: call(3, dense((3, 2))), ArrayMismatch, ["3", "(3, 2)", "(2, 3)"], id="shape"
    ),
    pytest.param(
        lambda call: call(3, dense((6,))), ArrayMismatch, ["(6,)", "(2, 3)"], id="as-many-elements"
    ),
    pytest.param(
        lambda call: call("weight", dense((2, 3), dtype=np.float64)),
        ArrayMismatch,
        ["weight", "float64", "float32"],
        id="dtype",
    ),
    pytest.param(
        lambda call: call(3, dense((2, 3), dtype=np.int32)),
        ArrayMismatch,
        ["3", "int32", "float32"],
        id="integers",
    ),
    pytest.param(
        lambda call: call([3, "weight"], [dense((2, 3)), dense((1,))]),
        ArrayMismatch,
        ["weight", "(1,)", "(2, 3)"],
        id="second-of-a-list",
    ),
    pytest.param(
        lambda call: call([3, "weight"], [dense((2, 3))]), KVStoreError, ["2", "1"], id="counts"
    ),
    pytest.param(
        lambda call: call(3, [dense((2, 3)), dense((2, 4))]),
        ArrayMismatch,
        ["(2, 4)", "(2, 3)"],
        id="second-device",
    ),
    pytest.param(
        lambda call: call(3, np.ones((2, 3), np.float32)), ArrayMismatch, ["3"], id="numpy-array"
    ),
    pytest.param(lambda call: call(3, []), ArrayMismatch, ["3", "no array"], id="no-array"),
    pytest.param(lambda call: call(2.5, dense((2, 3))), KVStoreError, ["2.5"], id="key-type"),
]


@pytest.mark.parametrize(("attempt", "kind", "words"), ON_EVERY_CALL)
@pytest.mark.parametrize("method", ["push", "pull", "pushpull"])
def test_a_wrong_call_raises_and_sends_nothing(
    store: kvstore_ext.P3Worker,
    happenings: Happenings,
    method: str,
    attempt: Callable[..., None],
    kind: type[KVStoreError],
    words: list[str],
) -> None:
    with pytest.raises(kind) as caught:
        attempt(getattr(store, method))
    for word in words:
        assert word in str(caught.value)
    mx.nd.waitall()
    assert happenings.take() == []


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ((1, dense((2,), dtype=np.int32)), ArrayMismatch, ["1", "int32", "float32"]),
        ((1, dense((2,), dtype=np.int8)), ArrayMismatch, ["int8"]),
        ((1, dense((2,), dtype=np.uint8)), ArrayMismatch, ["uint8"]),
        ((1, dense((2,), dtype=np.int64)), ArrayMismatch, ["int64"]),
        ((3, dense((2, 3))), KVStoreError, ["3", "already"]),
        (([1, 1], [dense((2,)), dense((3,))]), ArrayMismatch, ["1", "(3,)", "(2,)"]),
        (([1, 3], [dense((2,)), dense((2, 3))]), KVStoreError, ["3", "already"]),
        ((-1, dense((2,))), KVStoreError, ["-1", "0"]),
        ((1 << 63, dense((2,))), KVStoreError, [str(1 << 63)]),
    ],
)
def test_a_key_that_cannot_be_raises_and_sends_nothing(
    store: kvstore_ext.P3Worker,
    happenings: Happenings,
    values: tuple,
    kind: type[KVStoreError],
    words: list[str],
) -> None:
    with pytest.raises(kind) as caught:
        store.init(*values)
    for word in words:
        assert word in str(caught.value)
    mx.nd.waitall()
    assert happenings.take() == []


@pytest.mark.parametrize("method", ["pull", "pushpull"])
def test_a_sparse_array_cannot_take_a_dense_value(
    store: kvstore_ext.P3Worker, happenings: Happenings, method: str
) -> None:
    with pytest.raises(ArrayMismatch, match=r"3.*row_sparse.*dense"):
        getattr(store, method)(3, row_sparse((2, 3)))
    mx.nd.waitall()
    assert happenings.take() == []


def test_a_dense_array_for_a_sparse_key_is_refused(store: kvstore_ext.P3Worker) -> None:
    store.init("rows", row_sparse((4, 2)))
    with pytest.raises(ArrayMismatch, match=r"'rows'.*dense.*row_sparse"):
        store.push("rows", dense((4, 2)))


def test_sparse_keys_of_one_call_that_share_a_number_are_refused_before_either_begins(
    store: kvstore_ext.P3Worker,
) -> None:
    with pytest.raises(KVStoreError, match="keys 2 and 'rows' have the same number 2"):
        store.init(["rows", 2], [row_sparse((4, 2)), row_sparse((4, 2))])
    store.init("rows", row_sparse((4, 2)))


def test_a_key_that_cannot_turn_sparse_stays_as_it_is(
    store: kvstore_ext.P3Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = dataclasses.replace(store._lane.servers, most_bytes=8)
    monkeypatch.setattr(store._lane, "servers", small)
    for _ in range(2):
        with pytest.raises(KVStoreError, match="a server would have 24 bytes"):
            store.push("weight", row_sparse((2, 3)))
    out = mx.nd.zeros((2, 3))
    store.pushpull("weight", dense((2, 3)) * 5, out=out)
    assert (out.asnumpy() == 5).all()


def test_after_a_wrong_call_the_store_still_works(store: kvstore_ext.P3Worker) -> None:
    with pytest.raises(ArrayMismatch):
        store.pushpull([3, "weight"], [dense((2, 3)), dense((7,))])
    out = mx.nd.zeros((2, 3))
    store.pushpull(3, dense((2, 3)) * 5, out=out)
    assert (out.asnumpy() == 5).all()


def test_a_closed_store_says_so(store: kvstore_ext.P3Worker) -> None:
    store.close()
    with pytest.raises(KVStoreError, match="closed"):
        store.push(3, dense((2, 3)))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"slice_bytes": 7}, ["slice_bytes", "7", "8"]),
        ({"slice_bytes": (1 << 30) + 1}, ["slice_bytes", str((1 << 30) + 1), str(1 << 30)]),
        ({"slice_bytes": -200000}, ["slice_bytes", "-200000"]),
        ({"slice_bytes": 1e5}, ["slice_bytes", "100000.0", "int"]),
        ({"slice_bytes": True}, ["slice_bytes", "True", "int"]),
        ({"window_bytes": 100_000}, ["window_bytes", "100000", "200000"]),
        ({"window_bytes": -1}, ["window_bytes", "-1"]),
        ({"window_bytes": 1 << 80}, ["window_bytes", str(1 << 80)]),
        ({"timeout": 0}, ["timeout", "0", "1", "86400"]),
        ({"timeout": float("nan")}, ["timeout", "nan"]),
        ({"timeout": "long"}, ["timeout", "long"]),
        ({"silence": 0.5}, ["silence", "0.5", "1", "86400"]),
        ({"patience": -1}, ["patience", "-1", "0, which sets no limit", "30.0", "86400"]),
        ({"silence": 60, "patience": 59}, ["patience", "59", "silence, 60"]),
        ({"deterministic": 1}, ["deterministic", "1", "bool"]),
        ({"encode_threads": -1}, ["encode_threads", "-1", "1 to 64"]),
        ({"encode_threads": 65}, ["encode_threads", "65", "1 to 64"]),
        ({"slicebytes": 1}, ["slicebytes", "slice_bytes"]),
    ],
)
def test_options_out_of_range_are_refused(values: dict[str, object], words: list[str]) -> None:
    with pytest.raises(OptionError) as caught:
        Options.from_dict(values)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", "5", "null", '{"timeout": }', "timeout=5", ""])
def test_malformed_options_show_what_was_found(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("KVSTORE_EXT_OPTIONS", text)
    with pytest.raises(OptionError) as caught:
        mx.kv.create("p3")
    assert "KVSTORE_EXT_OPTIONS" in str(caught.value)
    assert repr(text) in str(caught.value)


JOB = {
    "DMLC_ROLE": "worker",
    "DMLC_NUM_WORKER": "1",
    "DMLC_NUM_SERVER": "1",
    "DMLC_PS_ROOT_URI": "127.0.0.1",
    "DMLC_PS_ROOT_PORT": "9000",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DMLC_ROLE", "Worker"),
        ("DMLC_ROLE", ""),
        ("DMLC_NUM_WORKER", "0"),
        ("DMLC_NUM_WORKER", "two"),
        ("DMLC_NUM_WORKER", "-1"),
        ("DMLC_NUM_WORKER", None),
        ("DMLC_NUM_SERVER", "0"),
        ("DMLC_NUM_SERVER", "\u00b2"),
        ("DMLC_NUM_SERVER", None),
        ("DMLC_PS_ROOT_URI", ""),
        ("DMLC_PS_ROOT_URI", None),
        ("DMLC_PS_ROOT_PORT", "65536"),
        ("DMLC_PS_ROOT_PORT", "http"),
        ("DMLC_PS_ROOT_PORT", None),
    ],
)
def test_a_malformed_job_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    for variable, good in JOB.items():
        monkeypatch.setenv(variable, good)
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    with pytest.raises(OptionError) as caught:
        mx.kv.create("p3")
    assert name in str(caught.value)
    is_missing = value is None or (name, value) == ("DMLC_PS_ROOT_URI", "")
    found = "is not set; it must be" if is_missing else f"is {value!r}; it must be"
    assert found in str(caught.value)


def refused_then_trained() -> None:
    import kvstore_ext
    import mxnet as mx

    from tests.support.happened import Happenings

    store = mx.kv.create("p3")
    out = mx.nd.zeros((2, 3))
    store.broadcast(0, mx.nd.zeros((2, 3)), out=out)
    mx.nd.waitall()
    happenings = Happenings(store)
    for wrong in (
        mx.nd.ones((3, 2)),
        mx.nd.ones((2, 3), dtype="float64"),
        mx.nd.ones((2, 3), dtype="int32"),
        mx.nd.ones((2, 3)).tostype("row_sparse"),
    ):
        try:
            store.pushpull(0, wrong)
        except kvstore_ext.ArrayMismatch as error:
            print("refused:", error)
    try:
        store.push(1, mx.nd.ones((2, 3)))
    except kvstore_ext.KeyNotInitialised as error:
        print("refused:", error)
    try:
        store.init("rows", mx.nd.sparse.zeros("row_sparse", (1 << 22, 256), dtype="float64"))
    except kvstore_ext.KVStoreError as error:
        print("refused:", error)
    mx.nd.waitall()
    print("sent meanwhile:", happenings.take())
    store.pushpull(0, mx.nd.ones((2, 3)), out=out)
    print("sum:", out.asnumpy().ravel().tolist())


def test_in_a_cluster_nothing_is_sent_either(cluster: Cluster) -> None:
    job = cluster.run(refused_then_trained)
    for worker in job.workers:
        assert worker.output.count("refused:") == 6
        assert "a server would have 4294967296 bytes" in worker.output
        assert "sent meanwhile: []" in worker.output
        assert f"sum: {[2.0] * 6}" in worker.output


def test_calls_without_arrays_to_write_to(store: kvstore_ext.P3Worker) -> None:
    with pytest.raises(KVStoreError, match="pull needs an array to write to: out is None"):
        store.pull(3)
    with pytest.raises(KVStoreError, match="an array to write to: out is None"):
        store.row_sparse_pull(3, row_ids=mx.nd.array([0]))
    with pytest.raises(KVStoreError, match="the numbers of rows: row_ids is None"):
        store.row_sparse_pull(3, out=row_sparse((2, 3)))


def test_what_is_no_array(store: kvstore_ext.P3Worker) -> None:
    """Such as a gradient that was never attached."""
    with pytest.raises(ArrayMismatch, match="key 3: got a NoneType, not an NDArray"):
        store.push(3, None)
    with pytest.raises(ArrayMismatch, match=r"keys \[3, 'weight'\]: got a NoneType"):
        store.push([3, "weight"], None)
    gradients = {3: dense((2, 3)), "weight": dense((2, 3))}
    store.push(list(gradients), gradients.values())
    store.push(3, iter([gradients[3]]))


def test_feed_forward_trains_with_no_method_of_ours() -> None:
    data = mx.io.NDArrayIter(np.ones((4, 3)), np.ones((4,)), 4)
    layer = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)
    network = mx.sym.SoftmaxOutput(layer, name="softmax")
    with pytest.warns(DeprecationWarning, match="FeedForward"):
        model = mx.model.FeedForward(network, num_epoch=1)
    words = "FeedForward cannot train with the store dist_sync_qsgd"
    with pytest.raises(KVStoreError, match=words):
        model.fit(data, kvstore=mx.kv.create("qsgd"))


def test_a_wait_ends_with_the_reason_of_the_job() -> None:
    for reason, raised, expected in (
        ("", mx.MXNetError("of an operator"), mx.MXNetError),
        ("worker 1 is lost", mx.MXNetError("of an operator"), ClusterError),
        ("worker 1 is lost", ArrayMismatch("of the script"), ArrayMismatch),
    ):
        with pytest.raises(mx.MXNetError) as found, of_job(lambda reason=reason: reason):
            raise raised
        assert type(found.value) is expected
        assert (str(found.value) == reason) == (expected is ClusterError)
