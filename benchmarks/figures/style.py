"""How all pictures look: what differs in colour differs in hatching or in its line too, for print.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Tuple

from benchmarks.extra import packages

with packages():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

# Of every arm: colour (most are Okabe and Ito's, which colour-blind readers tell apart), the
# hatching of its bars, and the marker and dashes of its line.
_ARMS: Dict[str, Tuple[str, str, str, Any]] = {
    "p3": ("#0072b2", "", "o", "-"),
    "slicing": ("#56b4e9", "\\\\\\", "s", "--"),
    "terngrad": ("#9ad0f0", "...", "^", "-"),
    "qsgd": ("#d55e00", "++", "D", "--"),
    "dgc": ("#cc79a7", "oo", "v", "-."),
    "dgc_thousandth": ("#7b3f61", "..", ">", ":"),
    "onebit": ("#009e73", "\\\\", "P", ":"),
    "signsgd": ("#117733", "--", "X", (0, (5, 1, 1, 1, 1, 1))),
    "fp16": ("#882255", "||", "p", "--"),
    "2bit": ("#b8860b", "**", "*", "-."),
    "slim_dp": ("#000000", "////", "h", "-"),
    "slim_dp_20": ("#009e73", "..", "^", "-."),
    "slim_dp_50": ("#cc79a7", "oo", "v", ":"),
    "ec_dnn_s": ("#44aa99", "xx", "<", (0, (3, 1, 1, 1))),
    "ec_dnn_r": ("#0072b2", "...", "s", "--"),
    "ec_dnn_m": ("#d55e00", "++", "D", ":"),
    "e_dnn": ("#000000", "////", "h", "-."),
    "ma_dnn": ("#666666", "", "v", "-"),
    "slim_dp_keys": ("#777777", "\\\\\\\\", "h", ":"),
    "dist_sync": ("#666666", "", "v", "-"),
    "dist_sync_2bit": ("#999999", "..", ">", ":"),
    "stock_p3": ("#e69f00", "///", "^", "-."),
    "horovod": ("#f0f0f0", "xxx", "x", ":"),
}
_DARKER = {"horovod": "#222222", "terngrad": "#3a8cc1"}  # lines are thinner than bars
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


def figure(width: float, height: float, rows: int = 1, columns: int = 1, **how: Any) -> Any:
    """A figure and its axes, one pair or an array of them, as pyplot.subplots; inches."""
    pyplot.rcParams.update(_SETTINGS)
    return pyplot.subplots(rows, columns, figsize=(width, height), facecolor="white",
                           layout="constrained", **how)


def bars(name: str) -> Dict[str, Any]:
    """How to draw an arm's bars."""
    colour, hatch, _, _ = _ARMS[name]
    return {"color": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.6, "capsize": 2,
            "error_kw": {"elinewidth": 0.8}}


def line(name: str) -> Dict[str, Any]:
    """How to draw an arm's line."""
    colour, _, marker, dashes = _ARMS[name]
    return {"color": _DARKER.get(name, colour), "marker": marker, "linestyle": dashes,
            "linewidth": 1.4, "markersize": 5}


def save(drawn: Any, file: Path) -> None:
    """Writes a figure as SVG."""
    file.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(file, format="svg", metadata={"Date": None})
    pyplot.close(drawn)
