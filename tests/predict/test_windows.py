"""Windows are as the lane's estimator has them (tests/core/window_test.cc)."""
from __future__ import annotations

import pytest
from kvstore_ext.predict.cluster import Cluster
from kvstore_ext.predict.network import load
from kvstore_ext.predict.simulation import predict
from kvstore_ext.predict.speeds import Speeds
from kvstore_ext.predict.stores import LaneStore
from kvstore_ext.predict.windows import AdaptedWindow, settled


@pytest.mark.parametrize("hosts", [2, 8, 16])
def test_a_near_link_has_four_slices_under_way_and_two_where_training_hardly_waits(hosts):
    cluster = Cluster.of(hosts, 1.0)
    calm, hurried = (settled(cluster, 1e-4, 200_000, hurries) for hurries in (False, True))
    assert (calm.part, calm.bytes) == (200_000, 800_000)
    assert (hurried.part, hurried.bytes) == (200_000, 400_000)


@pytest.mark.parametrize("hosts", [4, 16])
def test_long_links_hold_more(hosts):
    for hurries in (False, True):
        assert settled(Cluster.of(hosts, 10.0), 0.1, 200_000, hurries).bytes > 800_000


def test_what_travels_while_training_waits_decides():
    # Of eight servers one is on the worker's host. What travels fills the other links' windows.
    window = AdaptedWindow(Cluster.of(8, 1.0), 1e-4, 200_000)
    for windows, expected in ((1.5, 4), (1.3, 2), (1.8, 2), (2.0, 4), (1.5, 4)):
        window.iterated(0.5, windows / 0.5 * 8 * 800_000)
        assert window.bytes == expected * 200_000, windows


class Kept:
    """A store, and what it has made last."""

    reached = 1.0

    def __init__(self, store):
        self._store = store

    def make(self, *arguments):
        self.made = self._store.make(*arguments)
        return self.made


def test_what_comes_back_counts_where_it_is_more():
    for codec, parts in (("2bit", 4), ("onebit", 2)):  # sums of 2bit travel as floats
        store = Kept(LaneStore(Speeds(), codec))
        predict(load("resnet50"), Cluster.of(4, 1.0), store)
        assert store.made._rules.window.bytes == parts * 200_000, codec


def test_without_priorities_the_window_stays():
    store = Kept(LaneStore(Speeds(), priorities=False))
    predict(load("resnet50"), Cluster.of(8, 10.0), store)
    assert store.made._rules.window.bytes == 800_000


@pytest.mark.parametrize(
    ("name", "gigabits", "parts"),
    [("inceptionv3", 4.0, 2), ("resnet50", 4.0, 4), ("resnet50", 10.0, 2), ("inceptionv3", 1.0, 4)],
)
def test_simulated_training_hurries_where_it_computes_for_as_long_as_it_sends(
    name, gigabits, parts
):
    """As replays of 8 hosts do, by what their estimators have advised."""
    store = Kept(LaneStore(Speeds()))
    predict(load(name), Cluster.of(8, gigabits), store)
    assert store.made._rules.window.bytes == parts * 200_000
