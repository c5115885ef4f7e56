"""How all pictures look: what differs in colour differs in hatching too, for print."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Tuple

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

# Colour (Okabe and Ito's, which colour-blind readers tell apart) and hatching of every arm's bars.
BARS: Dict[str, Tuple[str, str]] = {
    "p3": ("#0072b2", ""),
    "terngrad": ("#9ad0f0", "..."),
    "stock_p3": ("#e69f00", "///"),
    "dist_sync": ("#666666", ""),
    "horovod": ("#f0f0f0", "xxx"),
}
_SETTINGS = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "kvstore_ext",  # the same picture is the same file
    "svg.fonttype": "path",
}


def figure(width: float, height: float) -> Tuple[Any, Any]:
    """A figure with one pair of axes; inches."""
    pyplot.rcParams.update(_SETTINGS)
    return pyplot.subplots(figsize=(width, height), facecolor="white", layout="constrained")


def bars(name: str) -> Dict[str, Any]:
    """How to draw an arm's bars."""
    colour, hatch = BARS[name]
    return {"color": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.6, "capsize": 2,
            "error_kw": {"elinewidth": 0.8}}


def save(drawn: Any, file: Path) -> None:
    """Writes a figure as SVG."""
    file.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(file, format="svg", metadata={"Date": None})
    pyplot.close(drawn)
