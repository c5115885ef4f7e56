"""A worker of EC-DNN: it trains a network of its own on its part of the images.

Every worker has as many examples a step, and makes as many steps, as those of other arms. Networks
begin with weights that differ, since an ensemble of equal ones would be no better than one. What is
tested is the ensemble of all workers' networks.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Tuple

import mxnet as mx
import numpy as np
from kvstore_ext import ec_dnn

from benchmarks.training.clock import Curve
from benchmarks.training.worker import open_task, schedule

TAU = 20  # steps between two exchanges


def work(settings: str, result: str) -> None:
    """Trains and writes the curve as JSON; see `job.py`."""
    how = json.loads(settings)
    recipe, task = how["recipe"], open_task(how)
    store = mx.kv.create(how["store"])
    mx.random.seed(1000 * how["seed"] + store.rank)
    network = task.make_network()
    own, test = _examples(task.data, store)
    curve = Curve()
    method = ec_dnn.Method("ec_dnn_s", tau=TAU)
    total = recipe["epochs"] * task.steps
    trainer = ec_dnn.Trainer(
        network, own, recipe["optimizer"],
        {"learning_rate": recipe["rate"], "lr_scheduler": schedule(recipe, total),
         **recipe["options"]},
        method=method, store=store, batch_size=recipe["batch"] // store.num_workers,
        evaluation=test, seed=how["seed"],
    )
    seconds, count = 0.0, len(test[1])
    store._barrier()
    for report in trainer.rounds(max(1, total // (method.tau + method.compression_steps))):
        seconds += sum(spent for what, spent in report.seconds.items() if what != "evaluate")
        # Of the ensemble, which every worker tests on all examples.
        curve.add(report.steps, seconds, [round(count * (1 - report.global_error)), count])
    Path(result).write_text(json.dumps({"rank": store.rank, **curve.points}))


def _examples(data: Any, store: Any) -> Tuple[Any, Any]:
    """This worker's part of the images and labels, and those that test."""
    train, test = (
        tuple(np.concatenate(arrays) for arrays in zip(*batches))
        for batches in (data.train(1, data.train_size, 0, 1), data.validation(data.train_size))
    )
    part = slice(store.rank, None, store.num_workers)
    return tuple(array[part] for array in train), test
