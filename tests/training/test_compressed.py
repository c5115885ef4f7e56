"""Compressed gradients in a job: what every worker gets is what the papers' formulas give."""
from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable

import mxnet as mx
import numpy as np
import pytest
from kvstore_ext import KVStoreError, compression
from kvstore_ext.keys.names import identity
from mxnet import autograd, gluon

from tests.support.checks.values import DEVICES
from tests.support.cluster import Cluster
from tests.support.paths import SCRIPTS
from tests.support.reference.codecs import (
    DGC,
    QSGD,
    Half,
    Method,
    OneBit,
    SignSGD,
    TernGrad,
    TwoBit,
)
from tests.support.reference.rounds import Simulation
from tests.support.results import Arrays, assert_same_bits, load_all
from tests.support.tasks.compressed import Case, gradient_of_worker
from tests.support.tasks.training import BATCH, make_batch, make_network
from tests.support.workers.drop_in import CROSS_ENTROPY, OPTIMIZERS, STEPS

SHAPE = (40, 5)
SCRIPT = SCRIPTS / "push_compressed.py"
TRAINING = SCRIPTS / "drop_in.py"
WORKERS = 3
# With the reference's method for a key of a shape.
CASES: dict[str, tuple[Case, Callable[[tuple], Method]]] = {
    "terngrad": (Case("terngrad"), lambda shape: TernGrad()),
    "terngrad, by its name": (Case("terngrad", by_name=True), lambda shape: TernGrad()),
    "terngrad, on two devices": (Case("terngrad", devices=2), lambda shape: TernGrad()),
    "terngrad, of two devices' memory": (
        Case("terngrad", devices=2, device="cpu_pinned"), lambda shape: TernGrad()
    ),
    "terngrad of float16": (Case("terngrad", dtype="float16"), lambda shape: TernGrad()),
    "terngrad, unshared": (
        Case("terngrad", {"scaler_sharing": False, "clip_sigma": 0}),
        lambda shape: TernGrad(0.0, sharing=False),
    ),
    "terngrad of another seed": (Case("terngrad", {"seed": 5}), lambda shape: TernGrad(seed=5)),
    "qsgd": (Case("qsgd"), lambda shape: QSGD()),
    "qsgd of float16": (Case("qsgd", dtype="float16", devices=2), lambda shape: QSGD()),
    "qsgd with feedback": (
        Case("qsgd", {"bits": 3, "bucket": 100, "norm": "max", "error_feedback": True}),
        lambda shape: QSGD(3, 100, euclidean=False, feedback=True),
    ),
    "dgc": (
        Case("dgc", {"ratio": 0.01, "warmup_rounds": 3, "clip_norm": 0.1}, momentum=0.9),
        lambda shape: DGC(0.01, 3, 4, 0.1),
    ),
    "dgc, masked": (
        Case("dgc", {"ratio": 0.05, "momentum_masking": True}, momentum=0.9),
        lambda shape: DGC(0.05, masking=True),
    ),
    "onebit": (Case("onebit"), lambda shape: OneBit()),
    "onebit by columns": (
        Case("onebit", {"bucket": 0}),
        lambda shape: OneBit(bucket=int(np.prod(shape[1:])) if len(shape) > 1 else 512),
    ),
    "signsgd": (Case("signsgd"), lambda shape: SignSGD()),
    "signsgd of float16, with a scale": (
        Case("signsgd", {"scale": 0.25, "seed": 9}, dtype="float16", devices=2),
        lambda shape: SignSGD(0.25, seed=9),
    ),
    "fp16": (Case("fp16"), lambda shape: Half()),
    "fp16 with feedback": (Case("fp16", {"error_feedback": True}), lambda shape: Half(True)),
    "2bit": (Case("2bit", {"threshold": 0.02}), lambda shape: TwoBit(0.02)),
}


@pytest.fixture(scope="module")
def found(module_cluster: Cluster) -> list[Path]:
    """Where each worker has left what it pulled, for all cases of one job: DIRECTORY/CASE-RANK."""
    directory = module_cluster.directory
    cases = [json.dumps(asdict(case)) for case, _ in CASES.values()]
    # Sums of three workers depend on the order unless they are deterministic.
    options = {"slice_bytes": 3000, "deterministic": True}
    module_cluster.run(SCRIPT, directory, *cases, workers=WORKERS, options=options)
    return directory


@pytest.mark.parametrize("name", CASES)
def test_every_worker_gets_the_bits_of_the_reference(found: Path, name: str) -> None:
    case, method_of = CASES[name]
    number = list(CASES).index(name)
    pulled = load_all(found, number, WORKERS)
    for key, shape in enumerate(case.shapes):
        simulation = Simulation(
            method_of(tuple(shape)),
            WORKERS,
            int(np.prod(shape)),
            seed=case.options.get("seed", 0),
            key=identity(number, key),
            momentum=case.momentum,
        )
        for round in range(1, case.rounds + 1):
            gradients = [gradient_of_worker(case, rank, key, round) for rank in range(WORKERS)]
            expected = simulation.round(gradients, round).astype(case.dtype).reshape(shape)
            for result in pulled:
                np.testing.assert_array_equal(result[f"{key}-{round}"], expected, f"{key}-{round}")


# A task of workers/drop_in.py, and what the reference knows it by.
TRAININGS: dict[str, Method] = {
    "trainer:sgd:1:terngrad": TernGrad(),
    "trainer:sgd:1:dgc": DGC(),
    "trainer:adam:1:qsgd": QSGD(),
    "bare:lamb:1:onebit": OneBit(),
    "trainer:sgd:1:signsgd": SignSGD(),  # two workers often tie
    "module:sgd:1:fp16": Half(),
}


@pytest.fixture(scope="module")
def trained(module_cluster: Cluster) -> Path:
    """Where two workers have left the parameters that they have in the end, for all tasks."""
    directory = module_cluster.directory / "trained"
    directory.mkdir()
    options = {"slice_bytes": 1000}
    module_cluster.run(TRAINING, "p3", directory, *TRAININGS, workers=2, options=options)
    return directory


@pytest.mark.parametrize("task", TRAININGS)
def test_training_follows_a_simulation_of_all_workers_and_the_servers(
    trained: Path, task: str
) -> None:
    interface, optimizer, _, _ = task.split(":")
    expected = simulate(TRAININGS[task], interface, optimizer, list(TRAININGS).index(task))
    for found in load_all(trained, task, 2):
        assert_same_bits(found, expected)


def simulate(method: Method, interface: str, optimizer: str, store: int) -> Arrays:
    """What 50 steps of two workers make of the network, in one process."""
    arguments = dict(OPTIMIZERS[optimizer])
    # dgc applies the momentum itself.
    momentum = arguments.pop("momentum", 0.0) if isinstance(method, DGC) else 0.0
    arguments["wd"] = arguments.get("wd", 0.0) / (1 - momentum)
    made = mx.optimizer.create(optimizer, rescale_grad=1 / (2 * BATCH), **arguments)
    updater = mx.optimizer.get_updater(made)
    network = make_network()
    # As Trainer numbers them; Module's keys are their names.
    parameters = dict(sorted(network.collect_params().items()))
    gradients_of = gradients_of_module if interface == "module" else gradients_of_gluon
    rounds = {
        name: Simulation(
            method,
            2,
            parameter.data().size,
            key=identity(store, name if interface == "module" else index),
            momentum=momentum,
        )
        for index, (name, parameter) in enumerate(parameters.items())
    }
    for step in range(STEPS):
        gradients = [gradients_of(network, *make_batch(step, rank)) for rank in range(2)]
        for index, (name, parameter) in enumerate(parameters.items()):
            pair = [gradient[name].reshape(-1) for gradient in gradients]
            total = rounds[name].round(pair, step + 1).reshape(parameter.shape)
            updater(index, mx.nd.array(total), parameter.data())
    return {name: parameter.data().asnumpy() for name, parameter in parameters.items()}


def gradients_of_gluon(
    network: Any, images: mx.nd.NDArray, labels: mx.nd.NDArray
) -> Arrays:
    with autograd.record():
        loss = CROSS_ENTROPY(network(images), labels)
    loss.backward()
    return {name: p.grad().asnumpy() for name, p in network.collect_params().items()}


def gradients_of_module(
    network: Any, images: mx.nd.NDArray, labels: mx.nd.NDArray
) -> Arrays:
    symbol = mx.sym.SoftmaxOutput(network(mx.sym.var("data")), name="softmax")
    executor = symbol.simple_bind(mx.cpu(), data=images.shape, softmax_label=labels.shape)
    values = {name: p.data() for name, p in network.collect_params().items()}
    executor.copy_params_from(values)
    executor.forward(is_train=True, data=images, softmax_label=labels)
    executor.backward()
    return {name: executor.grad_dict[name].asnumpy() for name in values}


@pytest.mark.parametrize("kind", compression.TYPES)
def test_what_is_carried_over_is_saved_and_loaded(kind: str) -> None:
    values = [np.random.RandomState(i).randn(*SHAPE).astype(np.float32) for i in range(6)]
    feedback = {"error_feedback": True} if kind in ("qsgd", "onebit", "fp16") else {}
    results = []
    for stops in (False, True):
        trainer = make_trainer(kind, **feedback)
        for value in values[:3]:
            step(trainer, value)
        if stops:
            trainer = go_on_from(trainer, kind, **feedback)
        for value in values[3:]:
            step(trainer, value)
        results.append(trainer._params[0].data(DEVICES[0]).asnumpy())
        trainer._kvstore.close()
    np.testing.assert_array_equal(results[1], results[0])


def test_what_another_model_has_carried_over_is_refused(tmp_path: Path) -> None:
    trainer = make_trainer("2bit")
    step(trainer, np.ones(SHAPE, np.float32))
    trainer.save_states(str(tmp_path / "states"))
    trainer._kvstore.close()
    other = make_trainer("2bit", shape=(7,))
    step(other, np.ones(7, np.float32))
    with pytest.raises(KVStoreError, match="key 0: the states are those of another model"):
        other.load_states(str(tmp_path / "states"))
    other._kvstore.close()


def make_trainer(kind: str, shape: tuple = SHAPE, **options: Any) -> gluon.Trainer:
    parameter = gluon.Parameter("weight", shape=shape, init="zeros")
    parameter.initialize(ctx=DEVICES)
    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": kind, **options})
    on_store = kind == "slim_dp"  # which runs it on the worker
    return gluon.Trainer(
        [parameter], "sgd", {"momentum": 0.9}, kvstore=store, update_on_kvstore=on_store
    )


def step(trainer: gluon.Trainer, gradient: np.ndarray) -> None:
    (parameter,) = trainer._params
    with autograd.record():
        losses = [
            (parameter.data(device) * mx.nd.array(gradient, device)).sum() for device in DEVICES
        ]
    autograd.backward(losses)
    trainer.step(10)


def go_on_from(trainer: gluon.Trainer, kind: str, **options: Any) -> gluon.Trainer:
    """Another trainer that begins with what this one saves."""
    other = make_trainer(kind, **options)
    with TemporaryDirectory() as directory:
        file = str(Path(directory) / "states")
        trainer.save_states(file)
        value = trainer._params[0].data(DEVICES[0])
        trainer._kvstore.close()
        other._params[0].set_data(value)
        other.load_states(file)
    return other
