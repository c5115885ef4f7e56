"""What ec_dnn says to input that cannot be, and where workers disagree or do not come."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import ArrayMismatch, KVStoreError, OptionError, ec_dnn
from kvstore_ext.ec_dnn.learner import Learner
from mxnet.gluon import HybridBlock, nn

from tests.support.checks.ec_dnn import CHECKS
from tests.support.cluster import AT_ONCE, Cluster, Job, await_failure
from tests.support.outcomes import assert_kept
from tests.support.paths import SCRIPTS

INPUTS = np.random.RandomState(0).normal(size=(20, 3)).astype(np.float32)
LABELS = np.arange(20) % 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tau": 0}, "tau is 0.*whole number, 1 or more"),
        ({"tau": 2.5}, "tau is 2.5"),
        ({"tau": True}, "tau is True"),
        ({"p": 0}, "p is 0.*above 0 to 100"),
        ({"p": 101}, "p is 101"),
        ({"p": "10"}, "p is '10'"),
        ({"training_steps": 0}, "training_steps is 0.*whole number, 1 or more, or None"),
        ({"mu": 0}, "mu is 0.*above 0 to 1"),
        ({"mu": 1.5}, "mu is 1.5"),
        ({"alpha": -0.1}, "alpha is -0.1.*0 or more"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"beta": -1}, "beta is -1.*0 or more"),
        ({"beta": float("inf")}, "beta is inf"),
        ({"wire": "float8"}, "wire is 'float8'.*float16"),
        ({"name": "ec_dnn"}, "name is 'ec_dnn'.*ec_dnn_s, ec_dnn_r, ec_dnn_m"),
        ({"name": "ma_dnn", "wire": "float16"}, "wire is 'float16'.*None for ma_dnn"),
    ],
)
def test_numbers_out_of_range(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        ec_dnn.Method(**{"name": "ec_dnn_s", "tau": 5, **options})


def test_whole_numbers_of_numpys_are_taken_as_pythons() -> None:
    found = ec_dnn.Method("ec_dnn_s", tau=np.int64(5), training_steps=np.uint8(100))
    assert found == ec_dnn.Method("ec_dnn_s", tau=5, training_steps=100)
    assert (type(found.tau), type(found.training_steps)) == (int, int)


class Two(HybridBlock):
    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x, x


class Chain(HybridBlock):
    """A dense layer, then something."""

    def __init__(self, *after: HybridBlock, units: int = 4) -> None:
        super().__init__()
        self.body = nn.HybridSequential()
        self.body.add(nn.Dense(units, in_units=3), *after)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.body(x)


def deferred() -> nn.Sequential:
    """No HybridBlock, whose shapes a first forward pass is to tell."""
    network = nn.Sequential()
    network.add(nn.Dense(4))
    return network


@pytest.mark.parametrize(
    ("network", "data", "words"),
    [
        (Chain(Two()), (INPUTS, LABELS), "output is a tuple.*one array"),
        (Chain(nn.HybridLambda(lambda F, x: F.reshape(x, (0, 2, 2)))), (INPUTS, LABELS),
         r"shape \(8, 2, 2\).*\(8, classes\)"),
        (Chain(units=1), (INPUTS, LABELS * 0), r"shape \(8, 1\).*2 classes or more"),
        (Chain(nn.HybridLambda("softmax")), (INPUTS, LABELS), "probabilities.*before it"),
        (Chain(nn.HybridLambda(lambda F, x: F.log(x - x - 1))), (INPUTS, LABELS), "NaN"),
        (Chain(), (INPUTS, LABELS + 1), "1 to 4.*0 to 3"),
        (Chain(), (INPUTS, LABELS[:7]), "20 inputs and 7 labels"),
        (Chain(), (INPUTS[:0], LABELS[:0]), "no examples"),
        (Chain(), INPUTS, "a ndarray.*a pair"),
        (nn.Sequential(), (INPUTS, LABELS), "Sequential.*HybridBlock"),
        (deferred(), (INPUTS, LABELS), "Sequential.*HybridBlock"),
    ],
)
def test_networks_and_data_that_do_not_fit(network: Any, data: Any, words: str) -> None:
    network.initialize()
    with pytest.raises(KVStoreError, match=words):
        train(network, data)


@pytest.mark.parametrize("label", [-1, 4])
def test_a_label_of_an_example_that_is_not_trained_yet(label: int) -> None:
    """As relabelling and evaluation look at them, beyond the first ones."""
    learner = Learner(ready(), (INPUTS, np.append(LABELS[:-1], label)), "sgd", None)
    with pytest.raises(ArrayMismatch, match=rf"labels of shape .* are .*{label}\b.*; they"):
        learner.outputs_of_all()


def train(network: Any, data: Any, method: str = "ec_dnn_s", **options: Any) -> ec_dnn.Trainer:
    arguments = {"store": mx.kv.create("p3"), "batch_size": 5, **options}
    try:
        trainer = ec_dnn.Trainer(
            network, data, "sgd", {"learning_rate": arguments.pop("rate", 0.1)},
            method=ec_dnn.Method(method, tau=3), **arguments,
        )
        for _ in trainer.rounds(2):
            pass
    finally:
        getattr(arguments["store"], "close", lambda: None)()
    return trainer


def ready() -> HybridBlock:
    network = Chain()
    network.initialize()
    return network


def test_a_network_that_is_not_initialised() -> None:
    with pytest.raises(KVStoreError, match="not initialised"):
        train(Chain(), (INPUTS, LABELS))


def test_a_network_on_several_devices() -> None:
    spread = Chain()
    spread.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    with pytest.raises(KVStoreError, match=r"cpu\(0\), cpu\(1\).*one device"):
        train(spread, (INPUTS, LABELS))


@pytest.mark.parametrize(
    ("name", "words"), [("local", r"store is a local.*'p3'"), ("qsgd", "compresses by qsgd")]
)
def test_a_store_of_another_kind(name: str, words: str) -> None:
    with pytest.raises(KVStoreError, match=words):
        train(ready(), (INPUTS, LABELS), store=mx.kv.create(name))


def test_a_store_that_skips_what_is_not_finite() -> None:
    store = kvstore_ext.P3Worker(kvstore_ext.Options(non_finite="skip"))
    with pytest.raises(KVStoreError, match=r"non_finite is 'skip'.*must be 'keep' or 'raise'"):
        train(ready(), (INPUTS, LABELS), store=store)


def test_an_error_of_the_workers_own_is_none_of_the_jobs() -> None:
    store = mx.kv.create("p3")
    trainer = ec_dnn.Trainer(
        ready(), (INPUTS, LABELS), "sgd", method=ec_dnn.Method("ec_dnn_s", tau=3), store=store,
        batch_size=5,
    )
    [weight, *_] = trainer._models.arrays()
    weight[:] = mx.nd.random.normal(0, -1, shape=weight.shape)  # the engine says so, later
    with pytest.raises(mx.MXNetError) as raised:
        trainer._models.wait()
    assert not isinstance(raised.value, KVStoreError)
    store.close()


def test_a_store_with_an_optimizer() -> None:
    store = mx.kv.create("p3")
    store.set_optimizer(mx.optimizer.SGD())
    with pytest.raises(KVStoreError, match="has an optimizer"):
        train(ready(), (INPUTS, LABELS), store=store)


def test_a_batch_of_nothing() -> None:
    with pytest.raises(OptionError, match="batch_size is 0"):
        train(ready(), (INPUTS, LABELS), batch_size=0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"evaluate_every": 0}, "evaluate_every is 0; it must be a whole number, 1 or more"),
        ({"count": -1}, "count is -1; it must be a whole number, 0 or more"),
    ],
)
def test_rounds_that_cannot_be(options: dict[str, int], words: str) -> None:
    store = mx.kv.create("p3")
    trainer = ec_dnn.Trainer(
        ready(), (INPUTS, LABELS), "sgd", method=ec_dnn.Method("ec_dnn_s", tau=3), store=store,
        batch_size=5,
    )
    with pytest.raises(OptionError, match=words):
        next(trainer.rounds(**{"count": 2, **options}))
    store.close()


@pytest.mark.parametrize(("method", "such"), [("ma_dnn", "ma_dnn"), (None, "ec_dnn_s")])
def test_a_method_is_no_word(method: Any, such: str) -> None:
    store = mx.kv.create("p3")
    words = rf"method is {method!r}; .* such as ec_dnn\.Method\('{such}', tau=100\)"
    with pytest.raises(OptionError, match=words):
        ec_dnn.Trainer(
            ready(), (INPUTS, LABELS), "sgd", method=method, store=store, batch_size=5
        )
    store.close()


def test_one_network_is_no_ensemble_and_relabels_nothing() -> None:
    store = mx.kv.create("p3")
    trainer = ec_dnn.Trainer(
        ready(), (INPUTS, LABELS), "sgd", method=ec_dnn.Method("s_dnn", tau=3), store=store,
        batch_size=5,
    )
    for report in trainer.rounds(2):
        assert (report.relabelled, report.ensemble_loss) == (0, None)
    store.close()


def test_training_that_diverges_is_named() -> None:
    with pytest.raises(KVStoreError, match=r"diverged.*learning rate"):
        train(ready(), (INPUTS * 1e20, LABELS), rate=1e20)


@pytest.mark.parametrize("method", ec_dnn.METHODS)
def test_one_worker_alone_has_every_method(method: str) -> None:
    trainer = train(ready(), (mx.nd.array(INPUTS), mx.nd.array(LABELS)), method)
    compression = 1 if method.startswith("ec_dnn") else 0
    assert trainer.steps == 2 * (3 + compression)


def test_a_dataset_with_transforms_and_deferred_shapes() -> None:
    network = nn.Dense(4)
    network.initialize()
    dataset = mx.gluon.data.ArrayDataset(INPUTS, LABELS.astype(np.float32))
    train(network, dataset.transform_first(lambda x: x * 2))
    assert network.weight.shape == (4, 3)


def test_trainers_of_one_store_go_on_from_one_snapshot(tmp_path: Path) -> None:
    ended = []
    for begin in (None, 3):
        store = mx.kv.create("p3")
        networks = [ready(), ready()]
        trainers = [
            ec_dnn.Trainer(
                network, (INPUTS, LABELS), "sgd", method=ec_dnn.Method("s_dnn", tau=3),
                store=store, batch_size=5,
            )
            for network in networks
        ]
        assert {"ec_dnn", "ec_dnn 2"} <= set(store.parts_in_snapshots())
        assert store.restore(tmp_path) == begin
        if begin is None:
            for trainer in trainers:
                next(trainer.rounds(1))
            assert store.snapshot(tmp_path, every=3)
        assert [trainer.steps for trainer in trainers] == [3, 3]
        ended.append([network.body[0].weight.data().asnumpy() for network in networks])
        store.close()
    np.testing.assert_array_equal(*ended)


@pytest.fixture(scope="module")
def job(module_cluster: Cluster) -> Job:
    """Three workers that have run all checks."""
    checks = "tests.support.checks.ec_dnn"
    return module_cluster.run(SCRIPTS / "run_checks.py", checks, workers=3)


@pytest.mark.parametrize("name", CHECKS)
def test_in_a_cluster(job: Job, name: str) -> None:
    assert_kept(job, name)


def disagree(mishap: str) -> None:
    """Worker 2 trains otherwise than the others."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx
    import numpy as np
    from kvstore_ext import ec_dnn
    from mxnet.gluon import nn

    store = mx.kv.create("p3")
    other = store.rank == 2
    units = 1 + (other and mishap == "architectures")
    method = ec_dnn.Method("ec_dnn_s", tau=1 + (other and mishap == "methods"))
    network = nn.Dense(2, in_units=units)
    network.initialize()
    data = (np.zeros((3, units)), np.array([0, 1, 0]))
    tests = data if other and mishap == "evaluations" else None
    ec_dnn.Trainer(
        network, data, "sgd", method=method, store=store, batch_size=2, evaluation=tests
    )
    store.barrier()


@pytest.mark.parametrize(
    ("mishap", "words"),
    [
        ("architectures", r"worker 2: the networks differ: parameter 0 is \(2, 2\) float32 here "
                          r"and \(2, 1\) float32 on worker 0"),
        ("methods", r"worker 2: workers train differently: .*tau=2.* here, .*tau=1.* on worker 0"),
        ("evaluations", r"worker 2: workers train differently: .* 3 examples for evaluation here, "
                        r".* no examples for evaluation on worker 0"),
    ],
)
def test_workers_that_train_differently(cluster: Cluster, mishap: str, words: str) -> None:
    job = cluster.start(disagree, mishap, workers=3, options=AT_ONCE)
    for worker in job.workers:
        assert worker.wait(60) not in (None, 0)
        assert re.search(words, worker.output)


def turns(mishap: str) -> None:
    """Takes turns in giving an array, until worker 1 does something else."""
    import kvstore_ext  # noqa: F401
    import mxnet as mx

    store = mx.kv.create("p3")
    array = mx.nd.ones((1000,))
    for turn in range(20):
        if store.rank == 1 and turn == 5 and mishap == "absent":
            import threading

            threading.Event().wait()
        root = 2 if store.rank == 1 and turn == 6 else turn % 2
        store.broadcast_from(root, "model", array)
        array.wait_to_read()


def test_a_worker_that_does_not_come_is_named(cluster: Cluster) -> None:
    job = cluster.start(turns, "absent", workers=3, options={"silence": 5, "patience": 5})
    job.await_output(r"worker 1 has not pushed key 'model', round 5, which workers 0 and 2 did", 60)
    await_failure(*job.servers)


def test_workers_that_disagree_about_the_root_are_named(cluster: Cluster) -> None:
    job = cluster.start(turns, "another root", workers=3, options=AT_ONCE)
    job.await_output(r"key 'model', round 6: workers? .* asked for the array of worker \d, "
                     r"worker \d.* for the array of worker \d", 60)
    assert all(worker.wait(30) not in (None, 0) for worker in job.workers)
