"""Predictions where the time is known by hand, within its bounds, and in proportion."""
from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
from kvstore_ext.predict import simulation
from kvstore_ext.predict.cluster import Cluster, Stragglers
from kvstore_ext.predict.costs import Costs
from kvstore_ext.predict.events import Events
from kvstore_ext.predict.limits import limit
from kvstore_ext.predict.models_exchanged import EcDnn
from kvstore_ext.predict.network import FRAMES, Layer, Network, load
from kvstore_ext.predict.parameter_servers import ParameterServers, Rules
from kvstore_ext.predict.ring import Ring, RingRules
from kvstore_ext.predict.simulation import Prediction, predict
from kvstore_ext.predict.speeds import Speeds
from kvstore_ext.predict.stores import LaneStore, StockStore, stores
from kvstore_ext.predict.topology import Topology
from kvstore_ext.predict.windows import Window

from benchmarks.replay.bound import least_seconds

RATE, DELAY = 1e8, 0.001
FREE = Speeds(message=0, small_message=0, byte=0, stock_message=0, stock_byte=0, add=0, update=0,
              wake=0)  # fmt: skip
ONE_KEY = Network("one", 8, "none", "here", [Layer({"weight": 10_000}, 0.02, 0.04)])
NO_OUTPUTS = EcDnn(tau=1, p=0, mu=0, diverse=False)


class Fixed:
    """A store with these rules."""

    reached = 1.0

    def __init__(self, **rules):
        self._rules = Rules(**{"window": Window(1 << 30, 1 << 30), "header": 0, **rules})

    def make(self, _events, topology, _cluster, _sizes):
        return ParameterServers(topology, self._rules)


class Drawn:
    """One draw of a store's."""

    reached = 1.0

    def __init__(self, store):
        self.make = store.make


def of_one_key(cluster: Cluster, **rules) -> float:
    return predict(ONE_KEY, cluster, Fixed(placement=[[(0, 10_000)]], **rules)).seconds


def apart(hosts: int, **others) -> Cluster:
    return Cluster(hosts, RATE, RATE, delay=DELAY, servers=1, beside=False, **others)


def wire(size: float) -> float:
    return size * FRAMES / RATE


# A server acknowledges a gradient before it answers with the sum.
ACKNOWLEDGED = wire(200)


def test_one_key_there_and_back():
    assert of_one_key(apart(1)) == pytest.approx(0.06 + 2 * (wire(40_000) + DELAY) + ACKNOWLEDGED)


def test_a_compressed_key_takes_the_bytes_of_each_way():
    seconds = of_one_key(apart(1), there=1.0, back=2.0)
    assert seconds == pytest.approx(
        0.06 + wire(10_000) + wire(20_000) + 2 * DELAY + ACKNOWLEDGED
    )


def test_processors_come_on_top():
    costs = Costs(encode=1e-6, add=2e-6, encode_sum=3e-6, decode=4e-6, update=5e-6)
    seconds = of_one_key(apart(1), costs=costs)
    assert seconds == pytest.approx(0.06 + 2 * (wire(40_000) + DELAY) + 15e-6 * 10_000)


def test_a_small_message_takes_less_than_a_large_one():
    costs = Costs(message=1e-3, small_message=1e-4)
    free, large = of_one_key(apart(1)), of_one_key(apart(1), costs=costs)
    # Both ways, at both ends; the acknowledgement is on its way meanwhile.
    assert large - free == pytest.approx(4e-3 - ACKNOWLEDGED)
    free, small = (
        of_one_key(apart(1), there=1.0, back=1.0, costs=each) for each in (Costs(), costs)
    )
    assert small - free == pytest.approx(4e-4 - ACKNOWLEDGED)


def test_slim_dp_takes_processors_by_the_share_that_travels():
    network, cluster = load("googlenet"), Cluster.of(4, 1000, processors=1)
    travelling = {"encode": 4e-9 / 0.3, "add": 2e-9 / 0.3, "decode": 2e-9 / 0.3}
    codecs = {"slim_dp": {**travelling, "encode_sum": 1e-9}}
    speeds = replace(FREE, codecs=codecs)
    of_all, of_two_thirds, free = (
        predict(network.scaled(0), cluster, store).seconds
        for store in (
            LaneStore(speeds, "slim_dp", shares=0.3),
            LaneStore(speeds, "slim_dp", shares=0.2),
            LaneStore(FREE, "slim_dp", shares=0.3),
        )
    )
    elements = network.elements  # of which each host encodes and decodes all, and adds up as many
    expected = elements * (4e-9 + 2e-9 + 2e-9 + 1e-9 / 4)
    assert of_all - free == pytest.approx(expected, rel=0.05)
    assert of_two_thirds - free == pytest.approx(elements * (8e-9 * 2 / 3 + 1e-9 / 4), rel=0.07)


def test_a_server_apart_answers_its_workers_in_turn():
    # So each has its next gradient when the server has that of the one before.
    there_and_back = wire(40_000) + 3 * wire(40_000) + 2 * DELAY
    assert of_one_key(apart(3)) == pytest.approx(0.06 + there_and_back + ACKNOWLEDGED)


def test_a_key_on_the_workers_own_host_takes_no_wire():
    cluster = Cluster(1, RATE, RATE, delay=DELAY)
    assert of_one_key(cluster) == pytest.approx(0.06)


def test_everybody_waits_for_a_straggler():
    cluster = apart(2, stragglers=Stragglers(1, 2.0))
    # The other's gradient has come meanwhile.
    assert of_one_key(cluster) == pytest.approx(
        0.12 + 3 * wire(40_000) + 2 * DELAY + ACKNOWLEDGED
    )


def test_a_ring_takes_its_steps():
    events, cluster = Events(), Cluster(4, RATE, RATE, delay=DELAY)
    ring = Ring(events, Topology(events, cluster, True), cluster, [40_000], RingRules(step=0.002))
    assert ring.seconds(40_000) == pytest.approx(6 * (wire(10_000) + DELAY + 0.002))


@pytest.mark.parametrize("alike", [False, True])
def test_a_ring_passes_each_host_once_however_many_workers_it_has(alike):
    network, store = load("resnet50"), stores(FREE)["ring"]
    one, four = (
        predict(network, Cluster.of(4, 25, workers_per_host=count), store, alike=alike)
        for count in (1, 4)
    )
    # Of 4 hosts a worker each sends 3/4 of all bytes twice, and of 16 workers 15/16.
    assert four.sent == pytest.approx(one.sent * (15 / 16) / (3 / 4))
    assert four.wire < 0.5


def test_ec_dnn_exchanges_all_models_twice_every_tau_steps():
    """Each of four workers has ten batches of 8: the ensemble labels seven of them, and equation 9
    needs what every model says to all."""
    cluster = Cluster(4, RATE, RATE, delay=0)
    found = EcDnn(tau=20, p=0.1, examples=320).predict(ONE_KEY, cluster)
    turn = models(1.5)  # to three servers, and beside it a quarter to three workers
    forward = 0.02
    assert turn < 7 * forward
    computing = 22 * 0.06 + 4 * (7 + 10) * forward
    assert found.compute == pytest.approx(computing / 20)
    assert found.seconds == pytest.approx((computing + 2 * turn) / 20)


def test_models_that_take_longer_than_their_outputs_come_one_after_the_other():
    cluster = Cluster(4, RATE / 100, RATE / 100, delay=0)
    found = EcDnn(tau=1, p=0.1, diverse=False, examples=32).predict(ONE_KEY, cluster)
    turn, forward = 100 * models(1.5), 0.7 * 0.02
    assert turn > forward
    # A tenth of one step is one.
    assert found.seconds == pytest.approx(2 * 0.06 + 4 * turn + forward)


def test_models_of_several_workers_of_a_host_travel_to_all_others() -> None:
    several = replace(Cluster.of(3, 1), workers_per_host=2)
    found = NO_OUTPUTS.predict(ONE_KEY, several)
    # Two thirds of its workers' two models; a third of these to four workers, and of the other
    # four to three, for none comes back to where it is from.
    assert found.sent == pytest.approx((2 * 2 / 3 + 2 * 4 / 3 + 4 * 3 / 3) * 40_000 * FRAMES)


@pytest.mark.parametrize(
    ("beside", "servers", "expected"),
    [
        (True, 4, 4 * 1.5),
        (True, 1, 3 + 3 * 2),  # from the host of the only server, to two workers of three in most
        (False, 1, 4 * 3),
        (False, 2, 4 * 1.5),
        (False, 8, 4 * 1),  # to a worker, or from one
    ],
)
def test_models_take_as_long_as_the_busiest_link(
    beside: bool, servers: int, expected: float
) -> None:
    cluster = replace(Cluster(4, RATE, RATE, delay=0), servers=servers, beside=beside)
    found = NO_OUTPUTS.predict(ONE_KEY, cluster)
    assert found.seconds == pytest.approx(0.06 + models(expected))


@pytest.mark.parametrize(
    ("tau", "examples", "own_server", "expected"),
    [
        (2000, 50_000, False, "compute"),
        (1, 128, False, "waiting"),  # for models, each of which fills one host's link
        (1, 128, True, "server"),
    ],
)
def test_ec_dnn_is_limited_by_what_takes_its_time(
    tau: int, examples: int, own_server: bool, expected: str
) -> None:
    cluster = Cluster.of(4, 1)
    if own_server:
        cluster = replace(cluster, servers=1, beside=False)
    found = EcDnn(tau=tau, examples=examples).predict(load("resnet50"), cluster)
    assert limit(found) == expected


def models(count: float) -> float:
    """Seconds of so many of ONE_KEY's on a link."""
    return count * wire(40_000)


def one_draw(name: str) -> Any:
    """A store by its name, one draw of those of which a prediction is the mean."""
    store = stores(FREE)[name]
    return Drawn(store) if isinstance(store, StockStore) else store


@lru_cache(maxsize=None)
def of_resnet50(store: str) -> Prediction:
    """With four hosts of 4 Gbit/s, which several tests look at."""
    return predict(load("resnet50"), Cluster.of(4, 4), one_draw(store))


@pytest.mark.parametrize("store", ["p3", "dist_sync", "stock_p3", "ring"])
def test_no_store_of_floats_is_faster_than_any_can_be(store):
    assert of_resnet50(store).seconds >= least_seconds(load("resnet50"), 4, 4)
    network = load("alexnet")
    found = predict(network, Cluster.of(2, 10), one_draw(store))
    assert found.seconds >= least_seconds(network, 2, 10)


def test_a_stock_prediction_is_the_mean_of_what_connections_may_get(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, cluster, store = load("alexnet"), Cluster.of(2, 0.1), StockStore(FREE)
    simulate = simulation._predict
    drawn: list[StockStore] = []
    each: list[float] = []

    def noting(network: Network, cluster: Cluster, own: StockStore, *others: bool) -> Prediction:
        found = simulate(network, cluster, own, *others)
        drawn.append(own)
        each.append(found.seconds)
        return found

    monkeypatch.setattr(simulation, "_predict", noting)
    seconds = predict(network, cluster, store).seconds
    assert drawn == store.draws()
    assert len({round(own, 6) for own in each}) == len(each) > 1
    assert seconds == pytest.approx(sum(each) / len(each))


@pytest.mark.parametrize("store", ["p3", "dist_sync", "stock_p3"])
def test_what_is_sent_is_what_the_others_need(store):
    payload = 2 * 3 / 4 * 4 * load("resnet50").elements * FRAMES
    # Some of an iteration's bytes leave in the one before, or after.
    assert 0.99 * payload < of_resnet50(store).sent < 1.03 * payload


def test_priorities_hide_more_than_slices_alone():
    network, cluster = load("resnet50"), Cluster.of(4, 4)
    by_priority = of_resnet50("p3").seconds
    as_ready = predict(network, cluster, LaneStore(FREE, priorities=False)).seconds
    assert network.compute < by_priority < 0.9 * as_ready


@pytest.mark.parametrize(
    ("name", "hosts"),
    [("p3", 8), ("dist_sync", 4), ("stock_p3", 4), ("terngrad", 8), ("slim_dp", 4)],
)
def test_hosts_that_are_alike_may_be_simulated_once(name, hosts):
    network, cluster = load("inceptionv3"), Cluster.of(hosts, 2)
    store = stores(FREE)[name]
    if isinstance(store, StockStore):
        # What connections get by chance is another in each; without, all draws are the same.
        store = Drawn(replace(store, unlike=0.0))
    each, alike = (predict(network, cluster, store, alike=way) for way in (False, True))
    assert alike.seconds == pytest.approx(each.seconds, rel=0.04)
    assert alike.sent == pytest.approx(each.sent, rel=0.02)


def test_servers_that_share_a_host_share_its_wire():
    network, cluster, store = load("vgg16"), Cluster.of(4, 2), stores(FREE)["p3"]
    more = replace(cluster, servers=6)
    each, alike = (predict(network, more, store, alike=way) for way in (False, True))
    assert alike.seconds == pytest.approx(each.seconds, rel=0.08)
    assert alike.seconds > 1.1 * predict(network, cluster, store).seconds


@pytest.mark.parametrize("workers", [1, 2])
def test_so_may_hosts_whose_processors_are_busy(workers):
    cluster = Cluster.of(4, 100, processors=2, workers_per_host=workers)
    busy = LaneStore(Speeds(byte=4e-9))
    each, alike = (predict(load("alexnet"), cluster, busy, alike=way) for way in (False, True))
    assert alike.seconds == pytest.approx(each.seconds, rel=0.02)
    assert alike.processors == pytest.approx(each.processors, abs=0.03)
    assert alike.server_processors == pytest.approx(each.server_processors, abs=0.03)
    assert limit(alike) == "host's processor"


def test_stragglers_are_a_class_of_their_own():
    cluster = Cluster.of(512, 10, stragglers=Stragglers(3, 1.5))
    classes = Topology(Events(), cluster, True).classes
    assert [(own.count, own.factor) for own in classes] == [(509, 1.0), (3, 1.5)]
    network = load("alexnet")
    found = predict(network, cluster, LaneStore(FREE, "signsgd"))
    assert found.seconds >= 1.5 * network.compute  # everybody waits for the slow ones


@pytest.mark.parametrize(
    ("busy", "expected"),
    [
        ({"wire": 0.9, "server_wire": 1.0}, "wire"),
        ({"wire": 0.5, "server_wire": 1.0}, "server"),
        ({"processors": 0.9, "server_processors": 1.0}, "host's processor"),
        ({"processors": 0.1, "server_processors": 1.0}, "server"),
        # What is uneven counts only where it is what is busy.
        ({"wire": 0.9, "server_wire": 0.9, "server_processors": 0.5}, "wire"),
        ({"wire": 0.1, "server_wire": 0.5, "processors": 0.9}, "host's processor"),
        ({"wire": 0.5, "server_wire": 0.6}, "waiting"),
    ],
)
def test_what_is_busiest_limits(busy, expected):
    shares = dict.fromkeys(("wire", "server_wire", "processors", "server_processors"), 0.0)
    assert limit(Prediction(seconds=2, compute=1, sent=0, **{**shares, **busy})) == expected


def test_processors_that_are_equally_busy_on_all_hosts_are_the_hosts_limit():
    found = predict(load("resnet50"), Cluster.of(2, 1000), LaneStore(replace(FREE, byte=1e-7)))
    assert limit(found) == "host's processor"


def test_several_workers_of_a_host_share_its_link():
    network = load("resnet50")
    one, two = (
        predict(network, Cluster.of(2, 1, workers_per_host=count), LaneStore(FREE))
        for count in (1, 2)
    )
    assert two.sent == pytest.approx(2 * one.sent, rel=0.02)
    assert two.seconds > 1.8 * one.seconds


def test_hosts_that_share_processors_wait_for_them():
    network, busy = load("alexnet"), Speeds(byte=4e-9)
    own, shared = (
        predict(network, Cluster.of(4, 40, processors=2, shared_by=hosts), LaneStore(busy)).seconds
        for hosts in (1, 4)
    )
    assert shared > 1.5 * own
