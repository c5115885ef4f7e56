"""Communication overlaps with the backward and the forward pass of ResNet-50.

No times are compared. The scripts hold something back until they have seen what overlap makes
possible, so that a job which overlaps ends, and one which does not waits until its timeout.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Callable

import pytest

from tests.support.cluster import Cluster, Process
from tests.support.paths import SCRIPTS

BLOCKS = 18  # the first convolution, 16 bottlenecks, the head
OVERLAP = SCRIPTS / "overlap"
# Scripts there, and the modes in which they train.
STATIC = pytest.param(("backward_gluon.py", "static"), marks=pytest.mark.all_only)
BACKWARD = [("backward_gluon.py", "hybrid"), STATIC]
FORWARD_GLUON = ("forward_gluon.py", "plain", "hybrid", "static")
FORWARD_MODULE = ("forward_module.py",)

Ended = Callable[..., "list[Process]"]


def found(process: Process) -> dict[str, Any]:
    """What a worker has written at its end."""
    return json.loads(process.output.splitlines()[-1])


def events(process: Process) -> list[tuple[str, str]]:
    """What happened to which parameter, in order."""
    return [(what, name) for what, name, _ in found(process)["events"]]


def rank_correlation(order: list[str], expected: list[str]) -> float:
    """Spearman's coefficient of two orders of the same names."""
    assert sorted(order) == sorted(expected)
    count = len(order)
    squares = sum((i - expected.index(name)) ** 2 for i, name in enumerate(order))
    return 1 - 6 * squares / (count * (count**2 - 1))


@pytest.fixture(scope="module")
def ended(module_cluster: Cluster) -> Ended:
    """Gives the workers of a job that has run a script, one job for all tests that ask."""

    @lru_cache(maxsize=None)
    def run(script: str, *modes: str) -> list[Process]:
        return module_cluster.run(OVERLAP / script, *modes, servers=1).workers

    return run


@pytest.mark.parametrize("command", [*BACKWARD, FORWARD_GLUON, FORWARD_MODULE], ids=" ".join)
def test_the_order_in_which_layers_need_their_parameters_is_learned(
    ended: Ended, command: tuple[str, ...]
) -> None:
    workers = ended(*command)
    learned = [found(process)["learned"] for process in workers]
    assert all(order == learned[0] for order in learned)
    needed = found(workers[0])["needed"]
    assert rank_correlation(learned[0], needed) > 0.9
    assert learned[0].index(needed[0]) < learned[0].index(needed[-1])


@pytest.mark.parametrize("command", BACKWARD, ids=" ".join)
def test_the_last_layer_has_arrived_before_the_first_has_gradients(
    ended: Ended, command: tuple[str, ...]
) -> None:
    for process in ended(*command):
        needed, order = found(process)["needed"], events(process)
        for name in needed[-2:]:
            assert order.index(("done", name)) < order.index(("ready", needed[0]))


@pytest.mark.parametrize("command", BACKWARD, ids=" ".join)
def test_every_gradient_is_ready_and_travels_before_its_parameters_are_there(
    ended: Ended, command: tuple[str, ...]
) -> None:
    for process in ended(*command):
        order = events(process)
        for name in found(process)["needed"]:
            places = [order.index((what, name)) for what in ("ready", "send", "result", "done")]
            assert places == sorted(places), name


@pytest.mark.parametrize("command", BACKWARD, ids=" ".join)
def test_priorities_are_places_in_the_learned_order(
    ended: Ended, command: tuple[str, ...]
) -> None:
    for process in ended(*command):
        happened, learned = (found(process)[key] for key in ("events", "learned"))
        priorities = {name: priority for what, name, priority in happened if what == "send"}
        assert priorities == {name: -position for position, name in enumerate(learned)}


@pytest.mark.parametrize("mode", FORWARD_GLUON[1:])
def test_each_block_of_a_gluon_network_waits_for_its_own_parameters(
    ended: Ended, mode: str
) -> None:
    output = "".join(process.output for process in ended(*FORWARD_GLUON))
    assert all(f"{mode} block {block} has run" in output for block in range(BLOCKS))


def test_each_block_of_a_module_waits_for_its_own_parameters(ended: Ended) -> None:
    output = "".join(process.output for process in ended(*FORWARD_MODULE))
    assert all(f"module block {block} has run" in output for block in range(BLOCKS))


@pytest.mark.parametrize(
    "command",
    [
        ("forward_gluon.py", "thin", "hybrid"),
        pytest.param(FORWARD_MODULE, marks=pytest.mark.all_only),
    ],
    ids=" ".join,
)
def test_layers_joined_by_mxnet_wait_for_each_others_parameters(
    cluster: Cluster, command: tuple[str, ...]
) -> None:
    """What the tests above would say if the store did not take care of it."""
    script, *arguments = command
    job = cluster.start(
        OVERLAP / script,
        *arguments,
        servers=1,
        options={"silence": 10, "patience": 10},
        environment={"MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": "15"},
    )
    for process in job.workers:
        assert process.wait() == 1
        assert re.search("worker 1 has not pushed key .*, which worker 0 did", process.output)
        assert re.search("worker 0 has not come to barrier .*, which worker 1 did", process.output)


def test_urgent_slices_overtake_a_backlog(cluster: Cluster) -> None:
    slices = {"backlog": 5000, "middle": 1000, "urgent": 10}
    job = cluster.run(
        push_three_keys,
        *slices.values(),
        workers=1,
        servers=1,
        options={"slice_bytes": 1000, "window_bytes": 1000},
    )
    trace = [tuple(event) for event in found(job.workers[0])]
    for what in ("send", "result"):
        names = [name for event, name, _ in trace if event == what]
        assert {name: names.count(name) for name in slices} == slices
        last = {name: len(names) - names[::-1].index(name) for name in slices}
        assert last["urgent"] < last["middle"] < slices["backlog"] // 2
    # A slice is surely in the queue when its key's next one is about to be. Then one other may
    # leave before it, which was being taken at that moment.
    for each in range(slices["urgent"] - 1):
        queued = trace.index(("queued", "urgent", each + 1))
        waited = trace[queued : max(queued, trace.index(("send", "urgent", each)))]
        assert sum(event == "send" and name != "urgent" for event, name, _ in waited) <= 1


def push_three_keys(backlog: str, middle: str, urgent: str) -> None:
    """Pushes keys of so many slices, the least urgent first."""
    import json

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    from tests.support.happened import Happenings

    store = mx.kv.create("p3")
    keys = {"backlog": int(backlog), "middle": int(middle), "urgent": int(urgent)}
    values = {key: mx.nd.zeros((slices, 250)) for key, slices in keys.items()}
    for key, value in values.items():
        store.broadcast(key, value, out=value)
    mx.nd.waitall()
    happenings = Happenings(store)
    for priority, (key, value) in enumerate(values.items()):
        store.pushpull(key, mx.nd.ones_like(value), out=value, priority=priority)
    mx.nd.waitall()
    happened = happenings.take()
    print(json.dumps([(event.what, event.key.strip("'"), event.slice) for event in happened]))
