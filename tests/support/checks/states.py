"""Optimizers' states come back from files, and those of another model are refused."""
from __future__ import annotations

import contextlib
import os
import pickle
import re
import tempfile
from pathlib import Path
from typing import Any, Callable
from unittest import mock

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext.protocol import state_pieces
from mxnet import autograd, gluon
from mxnet.kvstore import KVStore

from tests.support.checks.interfaces import module_of
from tests.support.checks.values import assert_equal, ours, pulled, total


@contextlib.contextmanager
def file_of(store: KVStore) -> Any:
    """A file name of this worker's own."""
    with tempfile.TemporaryDirectory() as directory:
        yield str(Path(directory) / f"states-{store.rank}")


def states_can_be_saved_and_loaded(_: KVStore) -> None:
    for optimizer in ("adam", "lamb"):
        once, twice = [trained_with(optimizer, again) for again in (False, True)]
        np.testing.assert_array_equal(once, twice)


def states_travel_in_pieces(_: KVStore) -> None:
    with mock.patch.object(state_pieces, "PIECE", 100):
        states_can_be_saved_and_loaded(_)


def trained_with(optimizer: str, load: bool) -> np.ndarray:
    """Six steps; loading after the last three what was saved before, then three again."""
    store = mx.kv.create("p3")
    shape = (40, 3)
    weight = gluon.Parameter("weight", shape=shape, init=mx.init.One())
    weight.initialize()
    trainer = gluon.Trainer([weight], optimizer, {"learning_rate": 0.1}, kvstore=store)

    def steps(numbers: range) -> None:
        for number in numbers:
            with autograd.record():
                loss = (weight.data() * ours(store, shape, number)).sum()
            loss.backward()
            trainer.step(1)

    with file_of(store) as file:
        steps(range(3))
        trainer.save_states(file)
        kept = weight.data().copy()
        steps(range(3, 6))
        if load:
            # The store's weight cannot be set back, so a second one of it goes on.
            store.barrier()
            store.close()
            store = mx.kv.create("p3")
            weight = gluon.Parameter("weight", shape=shape, init=mx.init.Constant(kept))
            weight.initialize()
            weight.set_data(kept)
            options = {"learning_rate": 77.0}  # the file has the right one
            trainer = gluon.Trainer([weight], optimizer, options, kvstore=store)
            trainer.load_states(file)
            steps(range(3, 6))
    found = weight.data().asnumpy()
    store.close()
    return found


def a_factor_of_one_holds_after_loading(_: KVStore) -> None:
    """Where it was 0 for a layer that was frozen before."""
    store = mx.kv.create("p3")
    weight = gluon.Parameter("weight", shape=(30,), init="zeros", lr_mult=0)
    weight.initialize()
    trainer = gluon.Trainer([weight], "sgd", {"learning_rate": 1.0}, kvstore=store)

    def step() -> np.ndarray:
        with mx.autograd.record():
            loss = weight.data().sum()
        loss.backward()
        trainer.step(store.num_workers)
        return weight.data().asnumpy()

    assert (step() == 0).all()
    with file_of(store) as file:
        trainer.save_states(file)
        store.barrier()
        trainer.load_states(file)
    assert (step() == 0).all()
    weight.lr_mult = np.float32(1)  # as MXNet takes it, too
    np.testing.assert_allclose(step(), -1)
    store.close()


def an_optimizer_that_looks_at_whole_parameters_is_not_loaded(_: KVStore) -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD())
    store.init(0, mx.nd.zeros((2, 2)))
    lamb = mx.optimizer.get_updater(mx.optimizer.LAMB())
    lamb(0, mx.nd.ones((2, 2)), mx.nd.ones((2, 2)))
    with file_of(store) as file:
        Path(file).write_bytes(lamb.get_states(dump_optimizer=True))
        with pytest.raises(kvstore_ext.KVStoreError, match="the optimizer LAMB, which looks at"):
            store.load_optimizer_states(file)
    store.close()


def a_schedule_that_cannot_be_saved_is_named(_: KVStore) -> None:
    class Local(mx.lr_scheduler.LRScheduler):
        def __call__(self, update: int) -> float:
            return self.base_lr

    for kind in ("sgd", "lamb"):  # on the servers, and on the workers
        store = mx.kv.create("p3")
        store.set_optimizer(mx.optimizer.create(kind, lr_scheduler=Local()))
        store.init(0, mx.nd.zeros((2, 2)))
        store.push(0, mx.nd.ones((2, 2)))
        with file_of(store) as file:
            with pytest.raises(kvstore_ext.KVStoreError, match=r"cannot be saved: .*in a module"):
                store.save_optimizer_states(file, dump_optimizer=True)
            store.save_optimizer_states(file)
        store.close()


def states_of_another_model_are_refused(_: KVStore) -> None:
    for optimizer in (mx.optimizer.Adam(), mx.optimizer.LAMB()):
        other = mx.optimizer.get_updater(type(optimizer)())
        other(0, mx.nd.ones((3, 2)), mx.nd.ones((3, 2)))
        store = mx.kv.create("p3")
        store.set_optimizer(optimizer)
        store.init(0, mx.nd.zeros((2, 2)))
        with file_of(store) as file:
            for states, words in (
                (other.get_states(), "(3, 2); the key has shape (2, 2)"),
                (other.get_states().replace(b"K\x00", b"K\x05", 1), "key 5; this store has 0"),
                (b"of another kind", "these are no optimizer states"),
            ):
                Path(file).write_bytes(states)
                with pytest.raises(kvstore_ext.KVStoreError, match=re.escape(words)):
                    store.load_optimizer_states(file)
        store.push(0, mx.nd.ones((2, 2)))
        assert np.isfinite(pulled(store, 0, (2, 2)).asnumpy()).all()
        store.close()


def loaded_momentum() -> tuple[KVStore, bytes]:
    """A new store, and the states that it has loaded: those of a step in another one, in a file
    without the optimizer, which nobody knows the number of steps from."""

    def begin() -> KVStore:
        store = mx.kv.create("p3")
        store.set_optimizer(mx.optimizer.SGD(learning_rate=1, momentum=0.5, lazy_update=False))
        store.init("weight", mx.nd.zeros((6, 5)))
        return store

    first = begin()
    first.push("weight", ours(first, (6, 5), 1))
    pulled(first, "weight", (6, 5)).wait_to_read()
    states = first._updater.get_states()
    first.barrier()  # a state is asked for before the others go on
    first.close()
    second = begin()
    second._updater.set_states(states)
    second.barrier()  # until rank 0 has put them back
    return second, states


def loaded_states_are_saved_again_before_the_first_step(_: KVStore) -> None:
    store, states = loaded_momentum()
    saved, again = pickle.loads(states), pickle.loads(store._updater.get_states())
    assert set(again) == {"weight"}
    assert_equal(again["weight"], saved["weight"].asnumpy())
    store.barrier()
    store.close()


def a_key_that_turns_sparse_at_once_keeps_a_loaded_state(_: KVStore) -> None:
    store, _states = loaded_momentum()
    store.push("weight", ours(store, (6, 5), 2).tostype("row_sparse"))
    expected = -0.5 * total(store, (6, 5), 1) - total(store, (6, 5), 2)
    assert_equal(pulled(store, "weight", (6, 5)), expected)
    store.close()


def trained(store: KVStore, updates: bool) -> gluon.Trainer:
    """A Trainer, with momentum, that has made a step; the store updates, or the worker."""
    weight = gluon.Parameter("weight", shape=(30,), init="zeros")
    weight.initialize()
    options = {"learning_rate": 0.5, "momentum": 0.5}
    trainer = gluon.Trainer([weight], "sgd", options, store, update_on_kvstore=updates)
    with autograd.record():
        loss = weight.data().sum()
    loss.backward()
    trainer.step(1)
    return trainer


def damaged_states_are_refused_where_a_trainer_updates(_: KVStore) -> None:
    store = mx.kv.create("terngrad")
    trainer = trained(store, updates=False)
    with file_of(store) as file:
        trainer.save_states(file)
        whole = Path(file).read_bytes()
        for states in (b"of another kind", b"", whole[: len(whole) // 2], pickle.dumps([whole])):
            Path(file).write_bytes(states)
            with pytest.raises(kvstore_ext.KVStoreError, match="these are no optimizer states"):
                trainer.load_states(file)
    store.close()


def states_whose_optimizer_the_method_refuses_change_nothing(_: KVStore) -> None:
    refused = mx.optimizer.get_updater(mx.optimizer.NAG(momentum=0.5))
    refused(0, mx.nd.ones((30,)), mx.nd.ones((30,)))
    for on_store in (True, False):
        store = mx.kv.create("p3")
        weight = gluon.Parameter("weight", shape=(30,), init="zeros")
        weight.initialize()
        options = {"learning_rate": 0.5, "momentum": 0.5}
        trainer = gluon.Trainer([weight], "sgd", options, store, {"type": "dgc"}, on_store)
        with autograd.record():
            loss = weight.data().sum()
        loss.backward()
        advised = pytest.warns(UserWarning, match="so that parameters travel back")
        with advised if on_store else contextlib.nullcontext():
            trainer.step(1)
        updater = store._updater if on_store else trainer._updaters[0]
        optimizer, carried = updater.optimizer, store.method.of_worker(0)
        assert carried.any()
        with file_of(store) as file:
            Path(file).write_bytes(refused.get_states(dump_optimizer=True))
            with pytest.raises(kvstore_ext.KVStoreError, match="that of NAG is another"):
                trainer.load_states(file)
        assert updater.optimizer is optimizer
        np.testing.assert_array_equal(store.method.of_worker(0), carried)
        store.barrier()
        store.close()


def check_failed_save(store: KVStore, save: Callable[[str], None], updater: Any) -> None:
    """Of states that were saved before, through a link, which stays one; but not through one that
    lies where they are written first."""
    failing = mock.patch.object(updater, "get_states", side_effect=kvstore_ext.ClusterError("lost"))
    with file_of(store) as file:
        link = Path(f"{file}-link")
        link.symlink_to(file)
        Path(f"{file}.worker-{store.rank}.part").symlink_to(f"{file}-elsewhere")
        save(str(link))
        before = Path(file).read_bytes()
        with failing, pytest.raises(kvstore_ext.ClusterError, match="lost"):
            save(str(link))
        assert Path(file).read_bytes() == before != b""
        assert link.is_symlink()
        assert sorted(os.listdir(link.parent)) == [Path(file).name, link.name]


def a_save_that_fails_leaves_the_file_that_was_there(p3: KVStore) -> None:
    for name, on_store in (("p3", True), ("terngrad", False)):
        store = mx.kv.create(name)
        trainer = trained(store, updates=on_store)
        updater = store._updater if on_store else trainer._updaters[0]
        check_failed_save(store, trainer.save_states, updater)
        store.barrier()
        store.close()
    store = mx.kv.create("qsgd")
    module = module_of(p3)
    module.init_optimizer(store)
    check_failed_save(store, module.save_optimizer_states, module._updater)
    store.barrier()
    store.close()


def states_are_saved_although_a_function_was_to_update(_: KVStore) -> None:
    """In a cluster such a function is nothing; alone it is refused."""
    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1, momentum=0.5))
    store.init("weight", mx.nd.zeros((6, 5)))
    if store.num_workers > 1:
        store._set_updater(lambda key, gradient, value: None)
    else:
        with pytest.raises(kvstore_ext.KVStoreError, match="cannot be changed to a function"):
            store._set_updater(lambda key, gradient, value: None)
    store.push("weight", ours(store, (6, 5)))
    pulled(store, "weight", (6, 5)).wait_to_read()
    with file_of(store) as file:
        store.save_optimizer_states(file)
        saved = pickle.loads(Path(file).read_bytes())
    assert_equal(saved["weight"], -total(store, (6, 5)))
    store.barrier()
    store.close()


def states_of_no_optimizer_are_neither_saved_nor_loaded(_: KVStore) -> None:
    store = mx.kv.create("p3")
    with file_of(store) as file:
        for call in (store.save_optimizer_states, store.load_optimizer_states):
            with pytest.raises(kvstore_ext.KVStoreError, match="no optimizer: call set_optimizer"):
                call(file)
        assert not Path(file).exists()
    store.close()


CHECKS = {
    check.__name__: check
    for check in (
        states_can_be_saved_and_loaded,
        states_travel_in_pieces,
        a_schedule_that_cannot_be_saved_is_named,
        states_of_another_model_are_refused,
        damaged_states_are_refused_where_a_trainer_updates,
        a_factor_of_one_holds_after_loading,
        an_optimizer_that_looks_at_whole_parameters_is_not_loaded,
        loaded_states_are_saved_again_before_the_first_step,
        a_key_that_turns_sparse_at_once_keeps_a_loaded_state,
        states_whose_optimizer_the_method_refuses_change_nothing,
        a_save_that_fails_leaves_the_file_that_was_there,
        states_are_saved_although_a_function_was_to_update,
        states_of_no_optimizer_are_neither_saved_nor_loaded,
    )
}
