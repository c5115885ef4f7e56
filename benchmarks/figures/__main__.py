"""python -m benchmarks.figures NAME...: measures and draws."""
from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from benchmarks.cluster import ClusterError
from benchmarks.figures import readme
from benchmarks.replay import measurement
from benchmarks.replay.forking import InterpreterError

FIGURES = {"readme": readme}
DIRECTORY = Path(__file__).resolve().parents[2] / "docs" / "figures"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__)
    parser.add_argument("names", nargs="+", choices=list(FIGURES), metavar="NAME",
                        help=", ".join(FIGURES))
    parser.add_argument("--minutes", type=float, default=600,
                        help="no run begins that would end later; default: 600")
    parser.add_argument("--draw-only", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    # So that clusters are removed when somebody ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    try:
        failures = [line for name in arguments.names for line in make(name, arguments)]
    except (measurement.ResultsError, ClusterError, InterpreterError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; run it again to go on")
    if failures:
        sys.exit("\n".join(failures))


def make(name: str, arguments: argparse.Namespace) -> list[str]:
    """Makes a figure; returns a line for each run that failed."""
    figure, results = FIGURES[name], DIRECTORY / f"{name}.jsonl"
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    runs, failures = figure.runs(), []
    if not arguments.draw_only:
        failures = list(measurement.measure(runs, results, 60 * arguments.minutes))
    lines = [line for line in measurement.lines_of(runs, results) if "seconds" in line]
    if not lines:
        return [*failures, f"{results} has none of the runs of {name}"]
    figure.draw(lines, DIRECTORY)
    print(f"{DIRECTORY / name}.svg and .md")
    return failures


if __name__ == "__main__":
    main()
