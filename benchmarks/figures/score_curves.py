"""Test scores of trainings against their seconds, as lines with bands from the least to the most.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, Collection, Dict, List, Sequence

from benchmarks.figures import curves, style
from benchmarks.training import summary
from benchmarks.training.arms import ARMS


def draw(axes: Any, lines: List[Dict[str, Any]], names: Sequence[str]) -> None:
    """Of arms: medians of the seeds that all have, and their range as a band."""
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


def draw_by_hosts(
    lines: List[Dict[str, Any]], hosts: Collection[int], names: Sequence[str], least: float,
    measure: str, file: Path,
) -> None:
    """Writes a picture with axes for each number of hosts, of scores from the least to 100."""
    drawn, axes = style.figure(7.2, 4.0, 1, len(hosts), sharey=True)
    for place, count in zip(axes, hosts):
        draw(place, [line for line in lines if line["hosts"] == count], names)
        place.set_title(f"{count} workers", loc="left", fontsize="medium")
        place.set_ylim(least, 100)
    axes[0].set_ylabel(measure)
    curves.legend(drawn, axes)
    style.save(drawn, file)
