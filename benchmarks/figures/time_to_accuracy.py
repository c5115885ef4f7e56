"""Test scores against the seconds of real trainings: what a user gains, by stores and peers."""
from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from benchmarks.figures import captions, curves, score_curves, style
from benchmarks.intervals import compared
from benchmarks.replay.summary import Spread
from benchmarks.training import summary
from benchmarks.training.arms import ARMS
from benchmarks.training.recipe import EnsembleRecipe, Recipe, Settings
from benchmarks.training.runs import Run
from benchmarks.training.tasks import TASKS

NAME = "time-to-accuracy"
HOSTS = 4
SEEDS = (1, 2, 3, 4, 5)
STORES = ("p3", "terngrad", "qsgd", "dgc", "slim_dp")
PEERS = ("dist_sync", "stock_p3", "horovod")
BASELINE = "dist_sync"


@dataclass(frozen=True)
class Panel:
    """A task.

    Parameters
    ----------
    megabits : float
        Mbit/s of a link each way, at which communication is about half of the baseline's time.
    goal : float
        The score whose time the table has.
    goal_text : str
        How it is called.
    limits : tuple of float
        The least and the highest score that are drawn; None is what there is.
    expected : float
        Seconds that a run takes, about.
    """

    title: str
    recipe: Recipe
    megabits: float
    names: Tuple[str, ...]
    goal: float
    goal_text: str
    limits: Tuple[float, Optional[float]]
    expected: float

    def runs(self, seed: int) -> List[Run]:
        """Those of a seed."""
        settings = Settings(self.recipe, HOSTS, self.megabits, seed)
        return [Run(name, settings, self.expected) for name in self.names]

    def alone(self) -> Run:
        """The baseline on links without a limit, once: how long computing takes."""
        return Run(BASELINE, Settings(self.recipe, HOSTS, 0, SEEDS[0]), self.expected)


PANELS = (
    Panel(
        "LeNet, handwritten digits",
        EnsembleRecipe(
            "digits", "lenet", 64, 15, 6, "sgd", 0.05, {"momentum": 0.9, "wd": 1e-4},
            aggregations={"ec_dnn_s": 15}, p=0.5, shared=False),
        200, (*STORES, "ec_dnn_s", *PEERS), 97, "97 %", (80, 100), 13,
    ),
    Panel(
        "Sockeye's network, English to German",
        Recipe("translation", "small", 128, 12, 20, "adam", 0.01, {"clip_gradient": 1.0}),
        400, (*STORES, *PEERS), 30, "a BLEU of 30", (0, None), 85,
    ),
)


def runs(quick: bool = False) -> List[Run]:
    """All that it takes, seeds and arms in turn."""
    if quick:
        return [run.short() for panel in PANELS for run in panel.runs(SEEDS[0])
                if run.arm in ("p3", BASELINE)]
    return [run for seed in SEEDS for panel in PANELS
            for run in ([panel.alone()] if seed == SEEDS[0] else []) + panel.runs(seed)]


def draw(lines: List[Dict[str, Any]], directory: Path) -> None:
    """Writes time-to-accuracy.svg and time-to-accuracy.md."""
    drawn, axes = style.figure(7.2, 4.2, 1, len(PANELS))
    panels = [(panel, [line for line in lines if line["recipe"]["task"] == panel.recipe.task])
              for panel in PANELS]
    for place, (panel, own) in zip(axes.flat, panels):
        _draw_panel(place, panel, own)
    curves.legend(drawn, axes.flat)
    style.save(drawn, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(panels)) + "\n")


def _draw_panel(axes: Any, panel: Panel, lines: List[Dict[str, Any]]) -> None:
    score_curves.draw(axes, _shaped(lines), panel.names)
    axes.axhline(panel.goal, color="black", linewidth=0.6)
    axes.set_title(panel.title, loc="left", fontsize="medium")
    axes.set_ylabel(TASKS[panel.recipe.task].measure)
    axes.set_ylim(*panel.limits)


def _shaped(lines: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Those of links with a limit."""
    return [line for line in lines if line["megabits"]]


def _text(panels: Sequence[Tuple[Panel, List[Dict[str, Any]]]]) -> Iterator[str]:
    yield "# Time to accuracy"
    yield ""
    yield (f"Real trainings on {HOSTS} hosts, each with a worker and a server, on links of network "
           "namespaces. Made by `python -m benchmarks.figures time-to-accuracy`. Medians of the "
           "seeds, and their range; every arm has the same network, optimizer and learning "
           "rates, and all but `ec_dnn_s` the same first weights and batches. Tests are not in the "
           "time.")
    yield ""
    yield ("All workers share the processors of one machine, so that computing takes longer than "
           "on hosts of their own, and what compression computes is in the time as well. Links are "
           "so slow that communication is the share of `dist_sync`'s time that stands below each "
           "table; on faster processors the same shares belong to faster links. "
           + captions.began([line for _, lines in panels for line in lines]))
    for panel, lines in panels:
        if summary.by_arm(_shaped(lines)):
            yield from ["", f"## {panel.title}", "", *_table(panel, lines), ""]
            yield from [*_beside(panel, lines), "", *_how(panel, lines)]


def _table(panel: Panel, lines: List[Dict[str, Any]]) -> Iterator[str]:
    found = summary.by_arm(_shaped(lines))
    measure = TASKS[panel.recipe.task].measure
    times = {name: [summary.seconds_to(line["curve"], panel.goal) for line in own]
             for name, own in found.items()}
    baseline = Spread.of(times[BASELINE]).median if BASELINE in times else math.inf
    yield (f"| | seconds to {panel.goal_text} | seeds that reach it | times as fast as "
           f"`{BASELINE}` | {measure} in the end | ms a step |")
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name in panel.names:
        if name not in found:
            continue
        curves_of = [line["curve"] for line in found[name]]
        reached = sum(map(math.isfinite, times[name]))
        needed = Spread.of(times[name])
        steps = Spread.of([1000 * summary.step_seconds(curve) for curve in curves_of])
        cells = [
            ARMS[name].label,
            _cell(needed, 1),
            f"{reached} of {len(curves_of)}",
            _gain(baseline, needed.median),
            _cell(Spread.of([curve[-1][2] for curve in curves_of]), 1),
            _cell(steps, 0),
        ]
        yield "| " + " | ".join(cells) + " |"


def _beside(panel: Panel, lines: List[Dict[str, Any]]) -> Iterator[str]:
    """Which scores in the end are told from p3's, seed by seed."""
    found = {
        name: {line["seed"]: line["curve"][-1][2] for line in own}
        for name, own in summary.by_arm(_shaped(lines)).items()
    }
    ours = found.pop("p3", {})
    differences = {
        ARMS[name].label: np.array([found[name][seed] - ours[seed] for seed in sorted(ours)])
        for name in panel.names
        if ours and found.get(name, {}).keys() == ours.keys()
    }
    if differences:
        measure = TASKS[panel.recipe.task].measure
        yield compared(f"{measure} in the end, less p3's of the same seed", differences)


def _cell(value: Spread, digits: int) -> str:
    if not math.isfinite(value.median):
        return "not reached"
    most = f"{value.most:.{digits}f}" if math.isfinite(value.most) else "never"
    return f"{value.median:.{digits}f} ({value.least:.{digits}f} to {most})"


def _gain(baseline: float, seconds: float) -> str:
    if not math.isfinite(baseline) or not math.isfinite(seconds):
        return "-"
    return f"{baseline / seconds:.2f}"


def _how(panel: Panel, lines: List[Dict[str, Any]]) -> Iterator[str]:
    """What the figures of a panel come from."""
    recipe = panel.recipe
    settings = ", ".join(f"{name} {value:g}" for name, value in recipe.options.items())
    yield (f"Links of {panel.megabits:g} Mbit/s each way; {recipe.batch} examples a step, of all "
           f"workers; {recipe.epochs} epochs; {recipe.optimizer} with a learning rate that falls "
           f"from {recipe.rate:g} to 0 along a cosine, {settings}.")
    alone = [line["curve"] for line in lines if not line["megabits"]]
    shaped = [line["curve"] for line in summary.by_arm(_shaped(lines)).get(BASELINE, [])]
    if alone and shaped:
        computing = 1000 * summary.step_seconds(alone[0])
        step = Spread.of([1000 * summary.step_seconds(curve) for curve in shaped]).median
        yield (f"On links without a limit a step of `{BASELINE}` takes {computing:.0f} ms: "
               f"{1 - computing / step:.0%} of its time over these links is communication.")
    if recipe.task == "digits":
        yield ("All seeds test with the same 360 images, of which one is 0.28 %.")
    if recipe.task == "translation":
        yield ("BLEU is that of a hundred phrases, translated without a beam. With `terngrad` "
               "embeddings and the output layer travel as floats and `clip_sigma` is 1, as where "
               "the documents train this network for longer. `dgc` adds gradients up "
               "before they travel: it refuses `clip_gradient`, and does without.")
    yield ("`dgc` begins with a warm-up of four epochs, as in its paper; `slim_dp` chooses a core "
           "every three epochs.")
    if "ec_dnn_s" in panel.names:
        yield ("`ec_dnn_s` is tested as the ensemble of all workers' networks, which is four times "
               "as much to compute as the one network of the others; its networks begin with "
               "different weights, as the method needs. It is tested "
               f"once an epoch, the others every {recipe.evaluate_every} steps, and while a test "
               "takes place, which is not in the time, the next network travels.")
