"""The paper's figures 1 to 3, 5 and 6 in one picture."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
from ensembles import plan
from ensembles.plan import METHODS, Choice, Results
from ensembles.tables import Tables

_ROOT = str(Path(__file__).resolve().parents[2])
if _ROOT not in sys.path:  # of a script there are only the directories beside it
    sys.path.append(_ROOT)

from benchmarks.figures import style  # noqa: E402

# Of a line: colour (Okabe and Ito's) and marker.
LOOKS = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"), ("#000000", "v"))
OF_METHOD = dict(zip(("ec_dnn_s", "e_dnn", "ma_dnn"), LOOKS))
Curve = Tuple[np.ndarray, np.ndarray]  # mini-batches, and per cent, a seed a row


def draw(results: Results, task: str, seeds: Sequence[int], file: Path) -> None:
    """Writes an SVG: four and eight workers that have all examples."""
    choice, tables = Choice(results, seeds), Tables(results, task, seeds)
    drawn, axes = style.figure(9.5, 5.6, 2, 3)
    for place, workers in zip(axes[0], (4, 8)):
        for method, look in OF_METHOD.items():
            found = choice.found(task, "shared", method, workers)
            for which, dashes in (("global", "-"), ("local", ":")):
                _line(place, curve(found, which), look, dashes, f"{METHODS[method]}, {which}")
        _label(place, f"figure 3: K = {workers}")
    _histogram(axes[0][2], {method: tables.gains("shared", method)
                            for method in ("ma_dnn", "ec_dnn_s")})
    variants = tables.variants()
    cases = len(plan.CASES)
    for place, some, title in (
        (axes[1][0], variants[:-cases], "figure 5: tau, K = 4"),
        (axes[1][1], variants[-cases:], "figure 6: parts left out, K = 4"),
    ):
        for (name, found), look in zip(some, LOOKS):
            _line(place, curve(found, "global"), look, "-", name)
        _label(place, title)
        place.legend(fontsize="x-small", frameon=False)
    axes[1][2].axis("off")
    axes[1][2].legend(*axes[0][0].get_legend_handles_labels(), loc="center left", frameon=False,
                      fontsize="small")
    style.save(drawn, file)


def curve(found: List[Dict[str, Any]], which: str) -> Curve:
    """Errors on the test part.

    Those of EC-DNN are from before each compression, the last one too: what its final models err is
    not among them. The others' last ones are of the final models.
    """
    rows = np.array([one["curve"] for one in found], float)
    errors = rows[:, :, 1 if which == "global" else 2]
    return rows[0, :, 0], 100 * errors


def _line(axes: Any, points: Curve, look: Tuple[str, str], dashes: str, name: str) -> None:
    steps, errors = points
    colour, marker = look
    axes.plot(steps, errors.mean(axis=0), color=colour, marker=marker, linestyle=dashes,
              markersize=3.5, linewidth=1.2, label=name)
    if dashes == "-":
        axes.fill_between(steps, errors.min(axis=0), errors.max(axis=0), color=colour, alpha=0.12,
                          linewidth=0)


def _label(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize="medium")
    axes.set_xlabel("mini-batches of a worker")
    axes.set_ylabel("test error, %")
    axes.grid()


def _histogram(axes: Any, gains: Dict[str, np.ndarray]) -> None:
    """Equation 11: how much better the global model is."""
    edges = np.arange(np.floor(min(map(np.min, gains.values()))) - 0.5,
                      np.ceil(max(map(np.max, gains.values()))) + 1.5)
    for method, values in gains.items():
        axes.hist(values, edges, weights=np.full(len(values), 100 / len(values)), alpha=0.6,
                  color=OF_METHOD[method][0], label=METHODS[method])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_title("figures 1 and 2", loc="left", fontsize="medium")
    axes.set_xlabel("local less global, points")
    axes.set_ylabel("% of the aggregations")
    axes.legend(fontsize="x-small", frameon=False)
