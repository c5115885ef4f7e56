"""One training: an arm's job on a cluster of its own, and what it came to."""
from __future__ import annotations

import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import Any, Dict, List

from benchmarks.replay import processes
from benchmarks.replay.processes import Interpreters
from benchmarks.training.arms import arm_of, recipe_of, worker_of
from benchmarks.training.recipe import Settings
from benchmarks.training.tasks import TASKS


def run(
    name: str, settings: Settings, interpreters: Interpreters, limit: float
) -> Dict[str, Any]:
    """Runs an arm's job.

    Parameters
    ----------
    limit : float
        Seconds that it may take.

    Returns
    -------
    dict
        `seconds` of training; `curve`, for each test the steps before it, the seconds of training
        before it, the mean of the workers, and the score; where workers have models of their own,
        `local`, the mean of their scores at each test.

    Raises
    ------
    JobError
        Naming who failed, with its last lines.
    """
    task = TASKS[settings.recipe.task]
    with tempfile.TemporaryDirectory(prefix="kvstore_ext-training-") as directory:
        data = Path(directory, "data")
        task.prepare(settings, data)
        followed = replace(settings, recipe=recipe_of(name, settings.recipe))
        how = {**asdict(followed), "arm": name, "data": str(data), "worker_task": task.worker}
        steps = -(-task.examples() // settings.recipe.batch)
        arm = arm_of(name, settings.recipe.task, steps)
        found = processes.run(
            arm, settings.hosts, settings.link, worker_of(name), how, interpreters, limit
        )
    curve: List[List[float]] = []
    for place, steps in enumerate(found[0]["steps"]):
        seconds = mean(worker["seconds"][place] for worker in found)
        score = task.score([worker["found"][place] for worker in found])
        curve.append([steps, round(seconds, 3), round(score, 3)])
    local = {"local": found[0]["local"]} if "local" in found[0] else {}
    return {"seconds": curve[-1][1], "curve": curve, **local}
