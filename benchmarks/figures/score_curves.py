"""Test scores of trainings against their seconds, as lines with bands from the least to the most.
"""
from __future__ import annotations

from typing import Any, Dict, List, Sequence

from benchmarks.figures import style
from benchmarks.training import summary
from benchmarks.training.arms import ARMS


def draw(axes: Any, lines: List[Dict[str, Any]], names: Sequence[str]) -> None:
    """Of arms: medians of the seeds, and their range as a band."""
    found = summary.by_arm(lines)
    for name in names:
        if name not in found:
            continue
        band = summary.band([line["curve"] for line in found[name]])
        how = style.line(name)
        axes.plot(band.seconds, [score.median for score in band.scores], label=ARMS[name].label,
                  **{**how, "markevery": 0.15, "markersize": 4})
        axes.fill_between(band.seconds, [score.least for score in band.scores],
                          [score.most for score in band.scores], color=how["color"], alpha=0.15,
                          linewidth=0)
    axes.set_xlabel("seconds of training")
    axes.set_xlim(left=0)
    axes.grid()
