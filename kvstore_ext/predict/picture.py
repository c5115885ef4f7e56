"""Predictions as a picture, where matplotlib is installed."""
from __future__ import annotations

from pathlib import Path
from typing import Sequence

from .sweep import Row

PICTURES = (".svg", ".png", ".pdf")


def draw(rows: Sequence[Row], file: Path) -> bool:
    """Draws the share of linear against hosts, a panel for each bandwidth; False where matplotlib
    is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    bandwidths = sorted({row.gigabits for row in rows})
    figure, panels = pyplot.subplots(
        1, len(bandwidths), figsize=(4 * len(bandwidths), 4), sharey=True, squeeze=False
    )
    for panel, gigabits in zip(panels[0], bandwidths):
        for store in dict.fromkeys(row.store for row in rows):
            own = [row for row in rows if row.gigabits == gigabits and row.store == store]
            hosts = [row.hosts for row in own]
            shares = [100 * row.linear for row in own]
            panel.plot(hosts, shares, marker="o", markersize=3, label=store)
        panel.set(title=f"{gigabits:g} Gbit/s", xlabel="hosts", xscale="log", ylim=(0, 105))
        panel.set_xscale("log", base=2)
    panels[0][0].set_ylabel("% of linear")
    panels[0][-1].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(file)
    pyplot.close(figure)
    return True
