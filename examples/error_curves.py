"""A picture of errors over the time of training."""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Mapping, Sequence

import script

Points = Sequence["tuple[float, float]"]

FORMATS = (".svg", ".png", ".pdf")


def picture(text: str) -> Path:
    """A flag's file to draw into."""
    file = Path(text)
    if file.suffix not in FORMATS:
        raise argparse.ArgumentTypeError(f"{text} has to end in one of {', '.join(FORMATS)}")
    script.file_to_write(text)
    return file


def draw(file: Path, title: str, curves: Mapping[str, Points]) -> None:
    """Draws curves of (seconds, share of errors) by name; errors on a logarithmic scale."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator

    # Words rather than their shapes, and every point, also of what is nearly a line.
    matplotlib.rcParams.update({"svg.fonttype": "none", "path.simplify": False})
    figure = Figure(figsize=(8, 5), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for name, points in curves.items():
        line, = axes.plot(*zip(*points), marker=".", label=name)
        line.set_gid(name)  # by which an SVG names it
    axes.set_title(title)
    axes.set_xlabel("seconds of training, evaluation apart")
    axes.set_xlim(left=0)
    axes.set_ylabel("test examples not recognised (logarithmic scale)")
    axes.set_yscale("log", nonpositive="clip")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    axes.yaxis.set_minor_formatter("")
    axes.grid(color="#dddddd")
    axes.legend()
    figure.savefig(file)
