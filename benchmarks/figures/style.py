"""How all pictures look: lines that differ in mark and dash as well, for readers without colours."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Tuple

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

# Colour (Okabe and Ito's, which colour-blind readers tell apart), mark and dash of every arm.
LINES: Dict[str, Tuple[str, str, str]] = {
    "p3": ("#0072b2", "o", "-"),
    "terngrad": ("#009e73", "s", "-"),
    "stock_p3": ("#d55e00", "^", "--"),
    "dist_sync": ("#000000", "v", ":"),
    "horovod": ("#cc79a7", "D", "-."),
    "bound": ("#888888", "", "-"),
}
_SETTINGS = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "svg.hashsalt": "kvstore_ext",  # the same picture is the same file
    "svg.fonttype": "path",
}


def figure(width: float, height: float) -> Tuple[Any, Any]:
    """A figure with one pair of axes; inches."""
    pyplot.rcParams.update(_SETTINGS)
    return pyplot.subplots(figsize=(width, height), facecolor="white", layout="constrained")


def line(name: str) -> Dict[str, Any]:
    """How to draw an arm's line."""
    colour, mark, dash = LINES[name]
    width = 1.0 if name == "bound" else 1.8
    return {"color": colour, "marker": mark, "linestyle": dash, "linewidth": width, "capsize": 3}


def save(drawn: Any, file: Path) -> None:
    """Writes a figure as SVG."""
    file.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(file, format="svg", metadata={"Date": None})
    pyplot.close(drawn)
