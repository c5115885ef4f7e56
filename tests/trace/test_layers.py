"""A trace tells when each layer ran, whichever way the network is run."""
from __future__ import annotations

import gc
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Iterator, NamedTuple

import kvstore_ext
import mxnet as mx
import pytest
from kvstore_ext.mxnet_hooks.traced_blocks import TracedBlocks
from kvstore_ext.mxnet_hooks.traced_graphs import Layer
from kvstore_ext.trace.events import Kind
from kvstore_ext.trace.reading import read
from mxnet import autograd, gluon

from tests.trace.layered import IMAGES, SymbolicTraining, Training, hold, released

LIMIT = 60  # seconds


class Way(NamedTuple):
    """A way to run a network, and the layers that a trace then has of each pass."""

    make: Callable[[], Any]
    forward: list[str]
    backward: list[str]


def named(names: str, ending: str = "_fwd") -> list[str]:
    return [f"{name}{ending}" for name in names.split()]


WAYS = {
    "plain": Way(Training, named("first first_relu normal bent last loss"),
                 named("last normal first")),
    "hybrid": Way(lambda: Training(active=True), named("first first_relu normal bent last loss"),
                  named("last bent normal first_relu first")),
    "static": Way(lambda: Training(static_alloc=True, static_shape=True),
                  named("first normal last loss"), named("last normal first")),
    "module": Way(SymbolicTraining, named("first relu normal bent last loss", ""),
                  named("loss last bent normal relu first", "")),
}  # fmt: skip


class Ran(NamedTuple):
    """A layer that has ended, and when, in nanoseconds."""

    layer: str
    kind: Kind
    end: int


@pytest.fixture
def store() -> Iterator[kvstore_ext.P3Worker]:
    """One that takes up no gradients: only layers are recorded."""
    store = kvstore_ext.P3Worker()
    yield store
    released.set()
    store.close()


def layers_so_far(directory: Path) -> int:
    """Events are in the file before it is closed."""
    (worker,) = read(directory).workers
    return len(worker.of_kind(Kind.FORWARD, Kind.BACKWARD))


def recorded(store: kvstore_ext.P3Worker, directory: Path) -> list[Ran]:
    store.stop_trace()
    (worker,) = read(directory).workers
    return [
        Ran(worker.layers[int(event["key"])], Kind(event["kind"]), int(event["end"]))
        for event in worker.of_kind(Kind.FORWARD, Kind.BACKWARD)
    ]


@pytest.mark.parametrize("name", WAYS)
def test_each_layer_is_recorded_once_a_pass_when_it_has_its_parameters(
    store: kvstore_ext.P3Worker, tmp_path: Path, name: str
) -> None:
    way = WAYS[name]
    training = way.make()
    before = way.forward[: way.forward.index("last" if name == "module" else "last_fwd")]
    mx.nd.waitall()
    store.start_trace(str(tmp_path))
    hold(training.last)
    training.step()
    limit = time.monotonic() + LIMIT
    while layers_so_far(tmp_path) < len(before) and time.monotonic() < limit:
        time.sleep(0.01)
    let_go = time.monotonic_ns()
    released.set()
    found = recorded(store, tmp_path)
    assert Counter((ran.layer, ran.kind) for ran in found) == Counter(
        [(layer, Kind.FORWARD) for layer in way.forward]
        + [(layer, Kind.BACKWARD) for layer in way.backward]
    )
    early = {(ran.layer, ran.kind) for ran in found if ran.end < let_go}
    assert early == {(layer, Kind.FORWARD) for layer in before}


def test_steps_after_a_trace_are_not_recorded_and_those_of_a_second_one_are(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    ways = [way.make() for way in WAYS.values()]
    for directory in (tmp_path / "first", tmp_path / "second"):
        store.start_trace(str(directory))
        for training in ways:
            training.step()
        found = recorded(store, directory)
        expected = sum(len(way.forward) + len(way.backward) for way in WAYS.values())
        assert len(found) == expected
        for training in ways:
            training.step()
        mx.nd.waitall()


def test_a_backward_pass_has_the_layers_whose_gradients_it_writes(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    nets = [gluon.nn.Dense(2, prefix=f"{name}_") for name in ("trained", "other")]
    for net in nets:
        net.initialize()
    store.start_trace(str(tmp_path))
    with autograd.record():
        trained, _ = (net(IMAGES) for net in nets)
    trained.backward()
    trainers = [gluon.Trainer(net.collect_params(), "sgd", kvstore=None) for net in nets]
    trainers[0].step(1)
    with pytest.raises(UserWarning, match=r"`other_.* has not been updated"):
        trainers[1].step(1)
    found = recorded(store, tmp_path)
    assert [(ran.layer, ran.kind) for ran in found if ran.kind == Kind.BACKWARD] == [
        ("trained_fwd", Kind.BACKWARD)
    ]
    assert {ran.layer for ran in found} == {"trained_fwd", "other_fwd"}


def test_a_gradient_that_is_new_stays_so_until_it_is_used(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    nets = [gluon.nn.Dense(2, prefix=f"{name}_") for name in ("one", "two")]
    store.start_trace(str(tmp_path))
    for net in nets:
        net.initialize()
        with autograd.record():
            output = net(IMAGES)
        autograd.backward([output])
    for net in nets:  # the second pass wrote nothing of the first network's
        gluon.Trainer(net.collect_params(), "sgd", kvstore=None).step(1)
    found = recorded(store, tmp_path)
    assert [ran.layer for ran in found if ran.kind == Kind.BACKWARD] == ["one_fwd", "two_fwd"]


def test_a_scripts_own_monitor_is_left_to_it(
    store: kvstore_ext.P3Worker, tmp_path: Path
) -> None:
    training = SymbolicTraining()
    monitor = mx.monitor.Monitor(1, pattern="last_output")
    training.module.install_monitor(monitor)
    store.start_trace(str(tmp_path))
    monitor.tic()
    training.step()
    assert [name for _, name, _ in monitor.toc()] == ["last_output"]
    assert recorded(store, tmp_path) == []


def test_networks_that_are_gone_are_not_kept() -> None:
    blocks, marked = TracedBlocks(), []
    worker: Any = SimpleNamespace(mark_layer=lambda name, **_: marked.append(name))
    for fold in range(3):
        network = gluon.nn.Dense(2, in_units=3)
        network.initialize()
        layer = Layer(f"dense {fold}", network.weight)
        blocks._mark_forward(worker, layer, network(mx.nd.ones((1, 3))))
    assert marked == ["dense 0", "dense 1", "dense 2"]
    del network, layer
    gc.collect()
    assert blocks._trained() == {}
