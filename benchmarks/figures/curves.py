"""Throughputs as lines with bands from one setting's least value to its most."""
from __future__ import annotations

from typing import Any, Optional, Sequence

from benchmarks.figures import style
from benchmarks.replay.arms import ARMS
from benchmarks.replay.summary import BOUND, Found


def draw(axes: Any, found: Found, names: Sequence[str], alone: Optional[float] = None) -> None:
    """Lines of arms: medians, the range of the runs as a band, and the bound.

    Parameters
    ----------
    alone : float, optional
        Throughput without communication.
    """
    for name in names:
        places = sorted(value for arm, value in found if arm == name)
        points = [found[name, place] for place in places]
        how = style.line(name)
        axes.plot(places, [point.median for point in points], label=ARMS[name].label, **how)
        axes.fill_between(places, [point.least for point in points],
                          [point.most for point in points], color=how["color"], alpha=0.2,
                          linewidth=0)
    places = sorted(value for arm, value in found if arm == BOUND)
    axes.plot(places, [found[BOUND, place].median for place in places], color="black",
              linestyle=(0, (4, 2)), linewidth=1, label="bound for float32")
    if alone:
        axes.axhline(alone, color="black", linestyle=(0, (1, 2)), linewidth=1,
                     label="without communication")
    _, most = axes.get_ylim()
    axes.set_ylim(0, 1.03 * most)
    axes.grid()


def legend(drawn: Any, all_axes: Any, columns: int = 3) -> None:
    """One for all axes, below them."""
    entries = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    drawn.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns,
                 frameon=False, fontsize="small")
