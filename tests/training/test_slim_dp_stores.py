"""The store slim_dp as scripts use it: Trainer and Module, checkpoints, mistakes."""
from __future__ import annotations

from typing import Any

import mxnet as mx
import pytest
from kvstore_ext import OptionError, _core, compression
from kvstore_ext.methods import SlimDP

from tests.support.checks.slim_dp import CHECKS
from tests.support.cluster import Cluster, Job, await_failure
from tests.support.outcomes import assert_kept
from tests.support.paths import SCRIPTS
from tests.support.results import assert_same_bits, load

OPTIONS = {"slice_bytes": 400, "deterministic": True}


@pytest.fixture(scope="module")
def job(module_cluster: Cluster) -> Job:
    """Two workers that have run all checks."""
    checks = "tests.support.checks.slim_dp"
    return module_cluster.run(SCRIPTS / "run_checks.py", checks, options={**OPTIONS, "q": 2})


@pytest.mark.parametrize("name", CHECKS)
def test_in_a_cluster(job: Job, name: str) -> None:
    assert_kept(job, name)


def go_on(directory: str, first: str, last: str) -> None:
    """Trains a part of a run, from the states that the part before has left."""
    import kvstore_ext  # noqa: F401

    from tests.support import results
    from tests.support.tasks.slim_dp import Bare, open_store

    script = Bare(open_store(core_delay=1))
    rank = script.store.rank
    states = f"{directory}/states-{rank}"
    if int(first) > 0:
        script.store.load_optimizer_states(states)
    script.train(int(first), int(last))
    script.store.save_optimizer_states(states, dump_optimizer=True)
    results.save(directory, f"{first}-{last}", rank, script.values())


def test_a_run_goes_on_from_saved_states_with_the_same_bits(cluster: Cluster) -> None:
    """It is saved in the middle of a round's steps, and while a core waits to take effect."""
    for first, last in ((0, 20), (0, 13), (13, 20)):
        cluster.run(go_on, cluster.directory, first, last, options=OPTIONS)
    for rank in range(2):
        whole, resumed = (load(cluster.directory, part, rank) for part in ("0-20", "13-20"))
        assert whole
        assert_same_bits(resumed, whole)


@pytest.mark.parametrize(("explorer", "pushed"), [("seed", 0.3), ("keys", 0.45)])
def test_a_round_sends_the_core_and_the_explorer_and_no_more(explorer: str, pushed: float) -> None:
    """On the lane; the figure slim-communication counts what a network adds."""
    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": "slim_dp", "q": 4, "explorer": explorer})
    store.set_optimizer(mx.optimizer.SGD())
    value = mx.nd.random.normal(shape=(400_000,))
    store.broadcast(0, value, out=value)
    every = 4 * value.size
    sent, received = [], []
    for _ in range(5):
        mx.nd.waitall()
        before = store.stats()
        store.pushpull(0, mx.nd.ones_like(value), out=value)
        mx.nd.waitall()
        after = store.stats()
        sent.append(after["sent"]["push"] - before["sent"].get("push", 0))
        received.append(after["received"]["result"] - before["received"].get("result", 0))
    store.close()
    assert all(0.3 * every < bytes_ <= 1.02 * 0.3 * every for bytes_ in received)
    indices = (pushed - 0.3) * every
    for number, bytes_ in enumerate(sent, 1):
        expected = every + indices if number == 4 else pushed * every
        assert expected < bytes_ <= 1.02 * expected


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({"alpha": 0.2, "beta": 0.3}, ["beta is 0.3", "0.2"]),
        ({"alpha": 1.5}, ["alpha is 1.5", "above 0 to 1"]),
        ({"beta": -0.1}, ["beta is -0.1", "0 to 1"]),
        ({"q": 0}, ["q is 0", "1 to"]),
        ({"p": 0}, ["p is 0", "1 to"]),
        ({"c": "much"}, ["'much'", "auto"]),
        ({"c": -1}, ["-1", "0 or more"]),
        ({"explorer": "ids"}, ["'ids'", "seed or keys"]),
        ({"q": 5, "core_delay": 5}, ["core_delay is 5", "below q, 5"]),
        ({"values": "onebit"}, ["OneBit", "terngrad, qsgd or fp16"]),
        ({"values": {"type": "qsgd", "bits": 99}}, ["bits is 99"]),
        ({"values": {"type": "qsgd", "error_feedback": True}}, ["without error_feedback"]),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], texts: list[str]) -> None:
    with pytest.raises(OptionError) as raised:
        compression.parse({"type": "slim_dp", **options})
    for text in texts:
        assert text in str(raised.value)


def test_shares_that_come_to_no_parameter_are_refused() -> None:
    method = SlimDP(alpha=0.3, beta=0.01)
    assert method.sizes(1000) == (10, 300)
    with pytest.raises(OptionError, match=r"beta is 0\.01, of 99 parameters none"):
        method.sizes(99)


def differing_options() -> None:
    """Opens a store whose options differ by worker."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": "slim_dp", "alpha": 0.5 + 0.1 * store.rank})
    store.init(0, mx.nd.zeros((1000,)))
    mx.nd.waitall()


def a_key_that_is_frozen() -> None:
    """Leaves a key out after a step, without which the second core cannot be chosen."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": "slim_dp", "q": 2})
    store.set_optimizer(mx.optimizer.SGD())
    values = [mx.nd.zeros((1000,)) for _ in range(2)]
    for key, value in enumerate(values):
        store.broadcast(key, value, out=value)
    for step in range(4):
        store.pushpull(0, values[0], out=values[0])
        if step == 0:
            store.pushpull(1, values[1], out=values[1])
    values[0].wait_to_read()


def test_other_options_on_a_worker_end_the_job(cluster: Cluster) -> None:
    job = cluster.start(differing_options)
    job.await_output("workers initialised a key differently.*alpha=0.[56].*alpha=0.[56]")
    await_failure(*job.workers, *job.servers)


def test_a_key_that_is_pushed_no_more_is_an_error(cluster: Cluster) -> None:
    job = cluster.start(a_key_that_is_frozen)
    job.await_output(
        "key 1 has been pushed 1 times, others 2 times and more; slim_dp chooses.*exclude"
    )
    await_failure(*job.workers, *job.servers)


def begin_late() -> None:
    """Worker 1 comes to its first values long after worker 0 has asked for a core."""
    import time

    import kvstore_ext  # noqa: F401
    import mxnet as mx

    from tests.support.checks.slim_dp import open_store

    store = open_store(p=1)
    store.set_optimizer(mx.optimizer.SGD())
    if store.rank == 1:
        time.sleep(30)
    value = mx.nd.zeros((1000,))
    store.broadcast(0, value, out=value)
    store.pushpull(0, value, out=value)
    value.wait_to_read()


def test_a_worker_that_is_late_is_named_before_the_core_that_waits_for_it(cluster: Cluster) -> None:
    job = cluster.start(begin_late, workers=2, options={"silence": 3, "patience": 3})
    job.await_output("worker 1 has not initialised key 0.* within 3 s")
    assert not any("core" in process.output for process in job.processes)


SPECIFICATION = (
    "slim_dp alpha=0.3 beta=0.15 q=4 core_delay=0 server_lr=1.0 seed=0 explorer=seed "
    "explorer_mean=pushed"
)


@pytest.mark.parametrize(
    ("found", "instead", "text"),
    [
        ("alpha=0.3", "alpha=0", "alpha is 0; it must be a number above 0 to 1"),
        ("beta=0.15", "beta=0.4", "beta must be at most alpha"),
        ("q=4", "q=0", "q is 0; it must be a whole number 1 to 2147483648"),
        ("explorer=seed", "explorer=ids", "explorer is ids; it must be seed or keys"),
        ("=pushed", "=some", "explorer_mean is some; it must be all or pushed"),
        (" seed=0", "", "seed is missing"),
        ("seed=0", "seeds=0", "no option 'seeds'; the options are alpha, beta, q,"),
        ("=pushed", "=pushed values: qsgd bits=8", "compression 'qsgd bits=8': bucket is missing"),
        ("=pushed", "=pushed values: 3bit", "no compression '3bit'; there are terngrad"),
        ("=pushed", "=pushed qsgd bits=8", "no option 'qsgd'"),
    ],
)
def test_specifications_that_cannot_be_are_refused_by_the_core(
    found: str, instead: str, text: str
) -> None:
    method = SlimDP(q=4)
    assert method.specification((1000,)) == SPECIFICATION
    wrong = SPECIFICATION.replace(found, instead)
    with pytest.raises(ValueError, match=text):
        _core.SlimKey(_core.SlimModel(wrong, 0), 1)
