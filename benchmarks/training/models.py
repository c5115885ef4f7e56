"""A worker that trains a model of its own, by EC-DNN or by what its paper compares it with.

Models begin with weights that differ, since an ensemble of equal ones would be no better than one;
but for ma_dnn, whose models begin alike. What is tested is the global model, before its
compression, and what a test needs is not in the time: of e_dnn, whose models meet at the end alone,
nor are the exchanges before that.
"""
from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any, List, Tuple

import mxnet as mx
import numpy as np
from kvstore_ext import ec_dnn

from benchmarks.training.clock import Curve
from benchmarks.training.recipe import EnsembleRecipe
from benchmarks.training.worker import open_task, schedule


def work(settings: str, result: str) -> None:
    """Trains and writes the curve as JSON; see `job.py`."""
    how = json.loads(settings)
    recipe, task = EnsembleRecipe(**how["recipe"]), open_task(how)
    store = mx.kv.create(how["store"])
    mx.random.seed(1000 * how["seed"] + store.rank)
    network = task.make_network()
    own, test = _examples(task.data, store, recipe.shared)
    total = recipe.epochs * task.steps
    method = ec_dnn.Method(
        how["arm"], tau=recipe.tau(how["arm"], total), p=recipe.p, training_steps=total)
    trainer = ec_dnn.Trainer(
        network, own, recipe.optimizer,
        {"learning_rate": recipe.rate, "lr_scheduler": schedule(how["recipe"], total),
         **recipe.options},
        method=method, store=store, batch_size=recipe.batch // store.num_workers,
        evaluation=test, seed=how["seed"],
    )
    curve, seconds = Curve(), 0.0
    local: List[float] = []
    rounds = recipe.aggregations[method.name]
    every = max(1, recipe.evaluate_every // (total // rounds))
    store._barrier()
    for report in trainer.rounds(rounds, every):
        seconds += report.training_seconds
        if report.global_error is None or report.local_errors is None:
            continue
        # Of the global model, which all workers test together, on all examples.
        count = len(test[1])
        curve.add(
            report.steps - method.compression_steps, seconds - report.seconds.get("compress", 0),
            [round(count * (1 - report.global_error)), count])
        local.append(100 * (1 - mean(report.local_errors)))
    Path(result).write_text(json.dumps({"rank": store.rank, **curve.points, "local": local}))


def _examples(data: Any, store: Any, shared: bool) -> Tuple[Any, Any]:
    """This worker's images and labels, and those that test."""
    train, test = (
        tuple(np.concatenate(arrays) for arrays in zip(*batches))
        for batches in (data.train(1, data.train_size, 0, 1), data.validation(data.train_size))
    )
    part = slice(None) if shared else slice(store.rank, None, store.num_workers)
    return tuple(array[part] for array in train), test
