"""Communication overlaps with the backward and the forward pass of a real ResNet-50.

No times are compared. The scripts hold something back until they have seen what overlap makes
possible, so that a job which overlaps ends, and one which does not waits until its timeout.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.cluster import Cluster, Process
from tests.support.paths import SCRIPTS

BLOCKS = 18  # the first convolution, 16 bottlenecks, the head
OVERLAP = SCRIPTS / "overlap"


def found(process: Process) -> dict[str, Any]:
    """What a worker has written at its end."""
    return json.loads(process.output.splitlines()[-1])


def rank_correlation(order: list[str], expected: list[str]) -> float:
    """Spearman's coefficient of two orders of the same names."""
    assert sorted(order) == sorted(expected)
    count = len(order)
    squares = sum((i - expected.index(name)) ** 2 for i, name in enumerate(order))
    return 1 - 6 * squares / (count * (count**2 - 1))


def check_learned_order(workers: list[Process]) -> None:
    learned = [found(process)["learned"] for process in workers]
    assert all(order == learned[0] for order in learned)
    needed = found(workers[0])["needed"]
    assert rank_correlation(learned[0], needed) > 0.9
    assert learned[0].index(needed[0]) < learned[0].index(needed[-1])


@pytest.mark.parametrize("mode", ["hybrid", "static"])
def test_gradients_travel_while_earlier_layers_are_being_computed(
    cluster: Cluster, mode: str
) -> None:
    job = cluster.run(OVERLAP / "backward_gluon.py", mode, servers=1, options={"trace": True})
    check_learned_order(job.workers)
    for process in job.workers:
        needed, learned, events = (found(process)[key] for key in ("needed", "learned", "events"))
        order = [(what, name) for what, name, _ in events]
        for name in needed[-2:]:
            assert order.index(("done", name)) < order.index(("ready", needed[0]))
        for name in needed:
            assert order.index(("ready", name)) < order.index(("send", name))
            assert order.index(("send", name)) < order.index(("result", name))
            assert order.index(("result", name)) < order.index(("done", name))
        priorities = {name: priority for what, name, priority in events if what == "send"}
        assert priorities == {name: -position for position, name in enumerate(learned)}


def test_each_block_of_a_gluon_network_waits_for_its_own_parameters(cluster: Cluster) -> None:
    modes = ["plain", "hybrid", "static"]
    job = cluster.run(OVERLAP / "forward_gluon.py", *modes, servers=1)
    output = "".join(process.output for process in job.workers)
    for mode in modes:
        assert all(f"{mode} block {block} has run" in output for block in range(BLOCKS))
    check_learned_order(job.workers)


def test_each_block_of_a_module_waits_for_its_own_parameters(cluster: Cluster) -> None:
    job = cluster.run(OVERLAP / "forward_module.py", servers=1)
    output = "".join(process.output for process in job.workers)
    assert all(f"module block {block} has run" in output for block in range(BLOCKS))
    check_learned_order(job.workers)


def test_layers_joined_by_mxnet_wait_for_each_others_parameters(cluster: Cluster) -> None:
    """What the tests above would say if the store did not take care of it."""
    jobs = [
        cluster.start(
            OVERLAP / script,
            *arguments,
            servers=1,
            options={"timeout": 10},
            environment={"MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": "15"},
        )
        for script, *arguments in (["forward_gluon.py", "hybrid"], ["forward_module.py"])
    ]
    for process in [*jobs[0].workers, *jobs[1].workers]:
        assert process.wait() == 1
        assert "worker 1 has not pushed key" in process.output
        assert "which worker 0 did" in process.output


def test_urgent_slices_overtake_a_backlog(cluster: Cluster) -> None:
    slices = {"backlog": 20000, "middle": 100, "urgent": 10}
    job = cluster.run(
        push_three_keys,
        *slices.values(),
        workers=1,
        servers=1,
        options={"trace": True, "slice_bytes": 1000, "window_bytes": 1000},
    )
    events = found(job.workers[0])
    for what in ("send", "result"):
        names = [name for event, name in events if event == what]
        assert {name: names.count(name) for name in slices} == slices
        last = {name: len(names) - names[::-1].index(name) for name in slices}
        assert last["urgent"] < last["middle"] < slices["backlog"] // 2
    sends = [name for event, name in events if event == "send"]
    # Nothing else leaves between them than what left while they were being queued.
    urgent = sends.index("urgent")
    assert sends[urgent : urgent + 2 * slices["urgent"]].count("urgent") == slices["urgent"]


def push_three_keys(backlog: str, middle: str, urgent: str) -> None:
    """Pushes keys of so many slices, the least urgent first."""
    import json

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    keys = {"backlog": int(backlog), "middle": int(middle), "urgent": int(urgent)}
    values = {key: mx.nd.zeros((slices, 250)) for key, slices in keys.items()}
    for key, value in values.items():
        store.broadcast(key, value, out=value)
    mx.nd.waitall()
    store.take_trace()
    for priority, (key, value) in enumerate(values.items()):
        store.pushpull(key, mx.nd.ones_like(value), out=value, priority=priority)
    mx.nd.waitall()
    print(json.dumps([(what, key) for _, what, key, *_ in store.take_trace()]))
