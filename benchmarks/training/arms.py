"""What is compared: arms of the replay, with what training needs, and EC-DNN with what its
paper compares it with."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict

from benchmarks.replay import arms
from benchmarks.replay.arms import OURS, Arm
from benchmarks.training.recipe import Recipe

_WORKER = "benchmarks.training.worker:work"
_ENSEMBLE_WORKER = "benchmarks.training.models:work"
ENSEMBLES = ("ma_dnn", "e_dnn", "ec_dnn_s", "ec_dnn_r", "ec_dnn_m")

_DGC = arms.ARMS["dgc"]
ARMS: Dict[str, Arm] = {
    # But for those whose store updates, which Trainer decides here, and for EC-DNN.
    **{name: arm for name, arm in arms.ARMS.items() if not (arm.momentum or arm.models)},
    # As Trainer does by itself. Where dist_sync's servers only add gradients up, on busy processors
    # 4 of 24 trainings ended at the score of chance; where they update, none of 24.
    "dist_sync": replace(arms.ARMS["dist_sync"], updates=True),
    "p3": replace(arms.ARMS["p3"], updates=True),
    # The networks here are small: of a thousandth of their elements, as in its paper, little is
    # left.
    "dgc": replace(_DGC, label="dgc, 1 %", compression={"type": "dgc", "ratio": 0.01}),
    "dgc_thousandth": replace(_DGC, label="dgc, 0.1 %"),
    **{name: Arm(name, OURS, "p3") for name in ENSEMBLES},
}
_WARM_UP = 4  # epochs of dgc, as in its paper
_CLIPPING = "clip_gradient"  # an option of optimizers
_CORE = 3  # epochs from one core of slim_dp to the next: fewer steps than by default
# As docs/figures.md trains this network: embeddings and the output layer travel as floats.
_TRANSLATION: Dict[str, Any] = {"exclude": ["*embedding*", "*output*"], "clip_sigma": 1}


def arm_of(name: str, task: str, steps: int) -> Arm:
    """An arm, for a task with so many steps an epoch."""
    arm = ARMS[name]
    options: Dict[str, Any] = {}
    kind = arm.compression.get("type")
    if kind == "dgc":
        options = {"warmup_rounds": _WARM_UP * steps}
    if kind == "slim_dp":
        options = {"q": _CORE * steps}
    if (kind, task) == ("terngrad", "translation"):
        options = _TRANSLATION
    return replace(arm, compression={**arm.compression, **options}) if options else arm


def recipe_of(name: str, recipe: Recipe) -> Recipe:
    """A recipe as an arm follows it: dgc refuses an optimizer that would clip sums of many
    gradients, and its own limit is another, of a whole key. It does without, where the other arms
    cut numbers of the mean gradient that hardly occur."""
    if ARMS[name].compression.get("type") != "dgc":
        return recipe
    return replace(recipe, options={
        option: value for option, value in recipe.options.items() if option != _CLIPPING
    })


def worker_of(name: str) -> str:
    """`module:function` of an arm's workers."""
    return _ENSEMBLE_WORKER if name in ENSEMBLES else _WORKER
