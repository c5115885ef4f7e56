"""A store in one process, compared with a dictionary whatever is asked of it in whatever order."""
from __future__ import annotations

import threading

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from tests.support.happened import Happenings

SHAPES = st.lists(st.integers(0, 12), max_size=3).map(tuple)
DTYPES = st.sampled_from(["float32", "float64", "float16"])
SEEDS = st.integers(0, 2**32 - 1)
# Arrays in pinned memory take the way of those on a GPU, which the lane cannot read in place.
DEVICES = st.sampled_from([
    (mx.cpu(0), mx.cpu(1)),
    (mx.cpu_pinned(0), mx.cpu_pinned(1)),
    (mx.cpu_pinned(1), mx.cpu(0)),
])


class StoreMachine(RuleBasedStateMachine):
    """Values are small whole numbers, so that every sum is exact in every type."""

    keys = Bundle("keys")

    @initialize(
        slice_bytes=st.integers(8, 300), slices=st.integers(0, 3), ordered=st.booleans(),
        devices=DEVICES,
    )
    def open(
        self, slice_bytes: int, slices: int, ordered: bool, devices: tuple[mx.Context, ...]
    ) -> None:
        self.devices = devices
        # A scalar's shape is then (), and arrays may have no elements.
        self.previous = mx.util.set_np_shape(True)
        self.store = kvstore_ext.P3Worker(
            kvstore_ext.Options(
                slice_bytes=slice_bytes, window_bytes=slices * slice_bytes, deterministic=ordered
            )
        )
        self.values: dict[int | str, np.ndarray] = {}
        self.updates = False

    def teardown(self) -> None:
        self.store.close()
        mx.util.set_np_shape(self.previous)

    @rule(
        target=keys,
        key=st.integers(0, 50) | st.text(max_size=3),
        shape=SHAPES,
        dtype=DTYPES,
        seed=SEEDS,
    )
    def init(self, key: int | str, shape: tuple[int, ...], dtype: str, seed: int) -> int | str:
        if key not in self.values:
            self.values[key] = self._numbers(shape, dtype, seed)
            self.store.init(key, mx.nd.array(self.values[key], dtype=dtype))
        return key

    @rule()
    def set_optimizer(self) -> None:
        self.updates = True
        self.store.set_optimizer(mx.optimizer.SGD(learning_rate=1))

    @rule(key=keys, seed=SEEDS, devices=st.integers(1, 2))
    def push(self, key: int | str, seed: int, devices: int) -> None:
        self.store.push(key, self._gradients(key, seed, devices))

    @rule(key=keys, devices=st.integers(1, 2))
    def pull(self, key: int | str, devices: int) -> None:
        outs = self._outs(key, devices)
        self.store.pull(key, out=outs)
        self._check(key, outs)

    @rule(key=keys, seed=SEEDS, devices=st.integers(1, 2), priority=st.integers(-9, 9))
    def pushpull(self, key: int | str, seed: int, devices: int, priority: int) -> None:
        outs = self._outs(key, devices)
        self.store.pushpull(key, self._gradients(key, seed, devices), outs, priority)
        self._check(key, outs)

    @rule(key=keys, seed=SEEDS, devices=st.integers(1, 2))
    def pushpull_in_place(self, key: int | str, seed: int, devices: int) -> None:
        values = self._gradients(key, seed, devices)
        self.store.pushpull(key, values)
        self._check(key, values)

    @rule(drawn=st.lists(keys, min_size=1), seed=SEEDS)
    def pushpull_several(self, drawn: list[int | str], seed: int) -> None:
        some = list(dict.fromkeys(drawn))
        outs = [self._outs(key, 1) for key in some]
        self.store.pushpull(some, [self._gradients(key, seed, 1) for key in some], out=outs)
        for key, out in zip(some, outs):
            self._check(key, out)

    def _numbers(self, shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        return np.asarray(np.random.RandomState(seed).randint(-4, 5, shape), dtype)

    def _gradients(self, key: int | str, seed: int, devices: int) -> list[mx.nd.NDArray]:
        """Arrays to push, which the dictionary's value takes into account."""
        value = self.values[key]
        parts = [self._numbers(value.shape, value.dtype, seed ^ i) for i in range(devices)]
        total = np.asarray(sum(parts), value.dtype)
        self.values[key] = np.asarray(value - total if self.updates else total, value.dtype)
        return [mx.nd.array(part, self.devices[i], part.dtype) for i, part in enumerate(parts)]

    def _outs(self, key: int | str, devices: int) -> list[mx.nd.NDArray]:
        value = self.values[key]
        return [
            mx.nd.full(value.shape, 99, self.devices[i], value.dtype) for i in range(devices)
        ]

    def _check(self, key: int | str, outs: list[mx.nd.NDArray]) -> None:
        for out in outs:
            np.testing.assert_array_equal(out.asnumpy(), self.values[key])


StoreMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
# Of float16 updated in float16, which whole numbers survive.
quiet = pytest.mark.filterwarnings("ignore:Accumulating with float16")
TestStoreAgainstADictionary = quiet(StoreMachine.TestCase)


@pytest.mark.parametrize(("priorities", "expected"), [(True, {3, 7}), (False, set())])
def test_without_priorities_all_slices_are_equals(priorities: bool, expected: set[int]) -> None:
    store = kvstore_ext.P3Worker(kvstore_ext.Options(priorities=priorities))
    happenings = Happenings(store)
    found = set()
    for key, priority in (("a", 3), ("b", 7)):
        value = mx.nd.zeros((5,))
        store.init(key, value)
        store.pushpull(key, mx.nd.ones((5,)), out=value, priority=priority)
        mx.nd.waitall()
        found |= {event.priority for event in happenings.take()}
    assert found - {0} == expected  # initial values have none
    store.close()


def test_nothing_is_pushed_beside_a_key_that_cannot_turn_sparse() -> None:
    store = kvstore_ext.P3Worker(kvstore_ext.Options())
    for key in ("a", 150000):
        store.init(key, mx.nd.zeros((4, 2)))
    gradient = mx.nd.ones((4, 2))
    with pytest.raises(kvstore_ext.KVStoreError, match="a key with sparse arrays is 150000, in"):
        store.push(["a", 150000], [gradient, gradient.tostype("row_sparse")])
    store.init(0, mx.nd.zeros((4, 2)))
    with pytest.raises(kvstore_ext.KVStoreError, match="'a' and 0 have the same number 0"):
        store.push([0, "a"], [gradient.tostype("row_sparse")] * 2)
    out = mx.nd.empty((4, 2))
    store.pull("a", out=out)
    assert (out.asnumpy() == 0).all()
    store.close()


def test_rows_of_several_keys_are_pulled_at_once() -> None:
    store = kvstore_ext.P3Worker(kvstore_ext.Options())
    for key, value in ((1, 1.0), (2, 2.0)):
        store.init(key, mx.nd.full((4, 2), value).tostype("row_sparse"))
    outs = [mx.nd.sparse.zeros("row_sparse", (4, 2)) for _ in range(2)]
    rows = [mx.nd.array([1], dtype="int64"), mx.nd.array([0, 3], dtype="int64")]
    store.row_sparse_pull([1, 2], out=outs, row_ids=rows)
    assert [out.asnumpy()[:, 0].tolist() for out in outs] == [[0, 1, 0, 0], [2, 0, 0, 2]]
    with pytest.raises(kvstore_ext.KVStoreError, match="got 2 keys, 2 arrays and 1 row_ids"):
        store.row_sparse_pull([1, 2], out=outs, row_ids=rows[:1])
    with pytest.raises(kvstore_ext.KVStoreError, match="'b' and 2 have the same number"):
        store.init("b", outs[0])
    store.close()


def test_an_optimizer_that_cannot_be_copied_is_told_by_its_class() -> None:
    store = kvstore_ext.P3Worker(kvstore_ext.Options())
    optimizer = mx.optimizer.SGD()
    optimizer.lock = threading.Lock()
    store.set_optimizer(optimizer)
    with pytest.raises(kvstore_ext.KVStoreError, match=r"optimizer SGD cannot be copied: .*lock"):
        store.init(0, mx.nd.ones((4, 2)).tostype("row_sparse"))
    store.close()


@pytest.mark.parametrize("rows", [[1], [0, 3]])  # as many as keys, too
def test_the_rows_of_a_list_of_one_key_need_no_list(rows: list[int]) -> None:
    store = kvstore_ext.P3Worker(kvstore_ext.Options())
    store.init("weight", mx.nd.ones((4, 2)).tostype("row_sparse"))
    out = mx.nd.sparse.zeros("row_sparse", (4, 2))
    store.row_sparse_pull(["weight"], out=[out], row_ids=mx.nd.array(rows, dtype="int64"))
    assert np.flatnonzero(out.asnumpy()[:, 0]).tolist() == rows
    with pytest.raises(kvstore_ext.KVStoreError, match="got 2 keys, 2 arrays and 1 row_ids"):
        store.row_sparse_pull(["weight"] * 2, out=[out] * 2, row_ids=mx.nd.array([0, 3]))
    store.close()
