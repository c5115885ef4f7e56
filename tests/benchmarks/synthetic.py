"""Result lines of a figure's runs as though they had been made."""
from __future__ import annotations

from typing import Any, Callable

from benchmarks.growth.run import GrowthRun
from benchmarks.replay.measurement import Run
from benchmarks.training.arms import ENSEMBLES
from benchmarks.training.runs import Run as Training

Result = dict[str, Any]


def lines_of(runs: list[Run], seconds: Callable[[Run], float]) -> list[Result]:
    """With so many seconds an iteration, and a link that is busy in four samples of ten.

    In one more it only sends, and in one it only receives.
    """
    lines = []
    for run in runs:
        line = {"key": run.key, "arm": run.arm, **run.settings.described(), "repeat": run.repeat,
                "seconds": seconds(run), "sent": 1000, "received": 1000}
        if run.settings.sample:
            full = run.settings.gigabits
            line["traffic"] = {"sample": run.settings.sample,
                               "sent": 10 * [*4 * [full], full, 0, 0, 0, 0, 0],
                               "received": 10 * [*4 * [full], 0, full, 0, 0, 0, 0]}
        lines.append(line)
    return lines


def trained(
    runs: list[Training], pace: Callable[[Training], float], score: Callable[[int], float]
) -> list[Result]:
    """Trainings with so many seconds a step, whose scores follow from the steps."""
    found = []
    for run in runs:
        curve = [[steps, steps * pace(run), score(steps)] for steps in range(10, 301, 10)]
        line = {"key": run.key, **run.fields, "curve": curve, "seconds": curve[-1][1]}
        if run.arm in ENSEMBLES:  # whose local models are worse
            line["local"] = [point[2] - 2 for point in curve]
        found.append(line)
    return found


def grown(runs: list[GrowthRun]) -> list[Result]:
    """Jobs in which everything is 20, and 3 a host, in the unit of the table."""
    lines = []
    for run in runs:
        value = 20.0 + 3 * run.hosts
        process = {"descriptors": value, "threads": value, "private": value * 1e6,
                   "a_step": value / 1e3, "idle": value / 1e3}
        roles = dict.fromkeys(("worker", "server", "scheduler"), process)
        others = dict.fromkeys(("startup", "first", "seconds", "barrier", "connections", "packets",
                                "idle_packets"), value)
        lines.append({"key": run.key, **run.fields, **others, **roles})
    return lines


def rows(text: str, first: str) -> list[list[str]]:
    """Cells of the lines of a document's tables that begin with such a cell."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]
    return [row for row in cells if row[0] == first]
