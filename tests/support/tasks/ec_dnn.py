"""Small trainings by ec_dnn, for a job's workers, for the simulation and for the reference."""
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import mxnet as mx
import numpy as np
from kvstore_ext import ec_dnn
from mxnet.gluon import HybridBlock, nn

CLASSES, INPUTS = 4, 6
SIZES = (30, 21, 9)  # of the workers' examples
BATCH = 5
RATE = 0.5
SEED = 3


@dataclass(frozen=True)
class Task:
    """One training; `layers` is None for a single dense layer."""

    method: str
    tau: int = 4
    rounds: int = 3
    options: dict[str, Any] = field(default_factory=lambda: {"p": 50.0})
    wide: bool = False  # a large network with batch normalisation
    momentum: float = 0.0
    prefetch: bool = True

    def make_method(self) -> ec_dnn.Method:
        return ec_dnn.Method(self.method, tau=self.tau, **self.options)


TASKS = {
    "ec_dnn_s": Task("ec_dnn_s"),
    "ec_dnn_r": Task("ec_dnn_r"),
    "ec_dnn_m": Task("ec_dnn_m"),
    "no diversity": Task("ec_dnn_s", options={"p": 50.0, "alpha": 0}),
    "e_dnn": Task("e_dnn"),
    "ma_dnn": Task("ma_dnn", tau=1, rounds=6),
    "ma_dnn with momentum": Task("ma_dnn", tau=1, rounds=6, momentum=0.9),
    "wide": Task("ec_dnn_s", rounds=2, wide=True, momentum=0.9),
    "wide, one after the other": Task(
        "ec_dnn_s", rounds=2, wide=True, momentum=0.9, prefetch=False
    ),
    "wide without diversity": Task("ec_dnn_s", rounds=2, options={"alpha": 0}, wide=True),
    "wide float16": Task(
        "ec_dnn_s", rounds=2, options={"wire": "float16"}, wide=True, momentum=0.9
    ),
    "wide ma_dnn": Task("ma_dnn", rounds=2, wide=True),
}


def make_network(task: Task) -> HybridBlock:
    if not task.wide:
        return nn.Dense(CLASSES, in_units=INPUTS)
    network = nn.HybridSequential()
    network.add(
        nn.Dense(300, in_units=INPUTS, use_bias=False),
        nn.BatchNorm(in_channels=300),
        nn.Activation("relu"),
        nn.Dense(400, in_units=300, activation="relu"),
        nn.Dense(CLASSES, in_units=400),
    )
    return network


def examples(rank: int) -> tuple[np.ndarray, np.ndarray]:
    """A worker's, (n, INPUTS) float32 and (n,)."""
    random = np.random.RandomState(100 + rank)
    labels = random.randint(0, CLASSES, SIZES[rank])
    inputs = random.normal(0, 1, (SIZES[rank], INPUTS)) + np.eye(CLASSES, INPUTS)[labels]
    return inputs.astype(np.float32), labels


def initial(task: Task, rank: int) -> list[np.ndarray]:
    """The parameters that a worker begins with."""
    random = np.random.RandomState(200 + rank)
    return [
        np.ones(p.shape, np.float32)
        if p.name.endswith(("gamma", "running_var"))
        else random.uniform(-0.5, 0.5, p.shape).astype(np.float32)
        for p in make_network(task).collect_params().values()
    ]


def values(network: HybridBlock) -> list[np.ndarray]:
    return [p.data().asnumpy() for p in network.collect_params().values()]


def train(
    task: Task,
    store: Any,
    snapshots: Path | None = None,
    on_step: Callable[[int], None] = lambda steps: None,
) -> dict[str, np.ndarray]:
    """A worker's part; returns parameters and what the rounds reported, by name.

    With `snapshots` it goes on from the last one there, and takes one after each round. `on_step`
    gets the number of steps.
    """
    network = make_network(task)
    network.initialize()
    for parameter, value in zip(network.collect_params().values(), initial(task, store.rank)):
        parameter.set_data(mx.nd.array(value))
    network.hybridize()
    tested = [np.concatenate(parts) for parts in zip(*map(examples, range(len(SIZES))))]
    trainer = ec_dnn.Trainer(
        network,
        examples(store.rank),
        "sgd",
        {"learning_rate": RATE / 50 if task.wide else RATE, "momentum": task.momentum},
        method=task.make_method(),
        store=store,
        batch_size=BATCH,
        evaluation=tested,
        seed=SEED,
        on_step=lambda _: on_step(trainer.steps),
        prefetch=task.prefetch,
    )
    found: dict[str, np.ndarray] = {}
    done = store.restore(snapshots) or 0 if snapshots else 0
    if done:
        found["begin"] = np.array(done)
    method = task.make_method()
    for report in trainer.rounds(task.rounds - done // (task.tau + method.compression_steps)):
        if snapshots:
            store.snapshot(snapshots, every=1)
        if report.ensemble_loss is not None:
            found[f"losses {report.round}"] = np.array([report.ensemble_loss, report.mean_loss])
        if report.coefficients is not None:
            found[f"coefficients {report.round}"] = report.coefficients
        errors = [*report.local_errors, report.global_error]
        found[f"errors {report.round}"] = np.array(errors)
    local = trainer.local_model(lambda: make_network(task))
    together = trainer.global_model(lambda: make_network(task))
    for name, block in (("trained", network), ("local", local)):
        found.update({f"{name} {i}": value for i, value in enumerate(values(block))})
    found["global outputs"] = together(mx.nd.array(tested[0])).asnumpy()
    found["local outputs"] = local(mx.nd.array(tested[0])).softmax().asnumpy()
    found["training losses"] = trainer.training_losses
    return found
