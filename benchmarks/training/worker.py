"""A worker: trains a network, and tests it now and then with its clock stopped."""
from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any, Dict

import mxnet as mx
from mxnet import autograd

from benchmarks.training.clock import Clock, Curve
from benchmarks.training.trainers import make_trainer


def work(settings: str, result: str) -> None:
    """Trains and writes the curve as JSON; see `job.py`."""
    how = json.loads(settings)
    recipe = how["recipe"]
    trainer = make_trainer(how)
    task = open_task(how)
    mx.random.seed(how["seed"])
    network = task.make_network()
    total = recipe["epochs"] * task.steps
    trainer.begin(
        network.collect_params(), recipe["optimizer"],
        {"learning_rate": recipe["rate"], "lr_scheduler": schedule(recipe, total),
         **recipe["options"]},
    )
    clock, curve, steps = Clock(), Curve(), 0
    trainer.meet()
    clock.go()
    for epoch in range(1, recipe["epochs"] + 1):
        mx.random.seed(how["seed"] + epoch * trainer.workers + trainer.rank)  # of dropout
        loss: Any = None
        for batch in task.train(epoch, trainer.rank, trainer.workers):
            before = loss
            with autograd.record():
                loss = task.loss(batch)
            loss.backward()
            trainer.step()
            # As a script that shows the loss of the step before: it is never far ahead.
            if before is not None:
                before.wait_to_read()
            steps += 1
            if steps % recipe["evaluate_every"] == 0 or steps == total:
                mx.nd.waitall()
                seconds = clock.stop()
                with trainer.tested():
                    curve.add(steps, seconds, task.evaluate(trainer.rank, trainer.workers))
                trainer.meet()
                clock.go()
    Path(result).write_text(json.dumps({"rank": trainer.rank, **curve.points}))


def schedule(recipe: Dict[str, Any], total: int) -> mx.lr_scheduler.LRScheduler:
    """The learning rate of each of so many steps."""
    return mx.lr_scheduler.CosineScheduler(total, base_lr=recipe["rate"])


def open_task(how: Dict[str, Any]) -> Any:
    """The recipe's task, as a worker has it."""
    module, _, name = how["worker_task"].partition(":")
    return getattr(importlib.import_module(module), name)(how)
