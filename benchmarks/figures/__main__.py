"""python -m benchmarks.figures NAME...: measures and draws."""
from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import Any, Dict, List

from benchmarks.figures import (
    compression,
    document,
    ec_dnn_time,
    growth,
    p3_accuracy,
    p3_bandwidth,
    p3_bound,
    p3_hosts,
    p3_slices,
    p3_traffic,
    readme,
    slim_communication,
    slim_time,
    terngrad_scaling,
    time_to_accuracy,
)
from benchmarks.replay import measurement
from benchmarks.replay.endings import in_one_line

FIGURES: Dict[str, Any] = {
    "readme": readme,
    "p3-bandwidth": p3_bandwidth,
    "p3-traffic": p3_traffic,
    "p3-hosts": p3_hosts,
    "p3-slices": p3_slices,
    "p3-bound": p3_bound,
    "slim-communication": slim_communication,
    "slim-time": slim_time,
    "ec-dnn-time": ec_dnn_time,
    "compression": compression,
    "time-to-accuracy": time_to_accuracy,
    "p3-accuracy": p3_accuracy,
    "growth": growth,
    "terngrad-scaling": terngrad_scaling,
}
ALL = "all"
DIRECTORY = document.ROOT / "docs" / "figures"
QUICK_DIRECTORY = document.ROOT / "build" / "figures"


def main() -> None:
    arguments = _parser().parse_args()
    if arguments.list:
        for name, figure in FIGURES.items():
            print(f"{name:20} {_what(figure)}")
        return
    names = list(FIGURES) if ALL in arguments.names else arguments.names
    latest = time.monotonic() + 60 * arguments.minutes
    with in_one_line(FileNotFoundError):
        failures = [line for name in names for line in make(name, arguments, latest)]
    if failures:
        sys.exit("\n".join(failures))


def make(name: str, arguments: argparse.Namespace, latest: float) -> List[str]:
    """Makes a figure, by a time of `time.monotonic`; returns a line for each run that failed."""
    directory = QUICK_DIRECTORY if arguments.quick else DIRECTORY
    figure, results = FIGURES[name], directory / f"{name}.jsonl"
    runs, failures = _runs(figure, arguments), []
    if arguments.dry_run:
        left = measurement.left(runs, results)
        minutes = sum(run.expected for run in left) / 60
        print(f"{name}: {len(left)} of {len(runs)} runs are left, about {minutes:.0f} minutes")
        return []
    directory.mkdir(parents=True, exist_ok=True)
    if runs and not arguments.draw_only:
        failures = list(measurement.measure(runs, results, latest - time.monotonic()))
    shown = figure.shown(arguments.quick) if _reads_files(figure) else runs
    lines = _with_failures(measurement.lines_of(shown, results))
    if runs and not lines:
        return [*failures, f"{results} has none of the runs of {name}"]
    figure.draw(lines, directory)
    if directory == DIRECTORY:
        document.show(name, _what(figure))
    print(f"{directory / name}.svg and .md")
    return failures


def _with_failures(found: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """The lines of runs that went well, with `failures`: how often the same failed."""
    failed = Counter(line["key"] for line in found if "seconds" not in line)
    return [{**line, "failures": failed[line["key"]]} for line in found if "seconds" in line]


def _runs(figure: Any, arguments: argparse.Namespace) -> List[measurement.Measurable]:
    reads = {"data_dir": arguments.data_dir} if _reads_files(figure) else {}
    return figure.runs(arguments.quick, **reads)


def _reads_files(figure: Any) -> bool:
    return bool(getattr(figure, "READS_FILES", False))


def _what(figure: Any) -> str:
    return figure.__doc__.strip().rstrip(".")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("names", nargs="*", type=_name, default=[], metavar="NAME",
                      help=f"{', '.join(FIGURES)}, or {ALL}")
    what.add_argument("--list", action="store_true", help="say what each figure shows")
    parser.add_argument("--minutes", type=float, default=600,
                        help="no run ends later; for all figures together; default: 600")
    parser.add_argument("--dry-run", action="store_true", help="say how long each takes, and end")
    parser.add_argument("--draw-only", action="store_true", help="measure nothing")
    parser.add_argument("--data-dir", help="where CIFAR-10's files lie, for p3-accuracy")
    parser.add_argument("--quick", action="store_true",
                        help="a few short runs, into build/figures: whether it works")
    return parser


def _name(text: str) -> str:
    if text not in FIGURES and text != ALL:
        raise argparse.ArgumentTypeError(f"{text!r}; it must be {', '.join(FIGURES)} or {ALL}")
    return text


if __name__ == "__main__":
    main()
