"""python -m benchmarks.replay: run, show, profile and traces."""
from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import Any, Callable, List, Tuple

from benchmarks.replay import arms, measurement, processors, summary, trace
from benchmarks.replay.endings import in_one_line
from benchmarks.replay.job import Settings

QUICK = {"gigabits": [4.0], "arms": ["dist_sync", "p3"], "repeats": 1, "iterations": 3}
FULL = {"gigabits": [1.0, 2.0, 4.0, 6.0, 10.0], "arms": ["p3", "stock_p3", "dist_sync", "horovod"],
        "repeats": 3, "iterations": 10}


def main() -> None:
    arguments = _parser().parse_args()
    with in_one_line(trace.TraceError):
        arguments.function(arguments)


def run(arguments: argparse.Namespace) -> None:
    """Measures what the results file does not have yet, and prints the table."""
    for name, value in (QUICK if arguments.quick else FULL).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    name = arguments.trace
    if name.endswith(".json"):
        name = str(Path(name).resolve())
    trace.load(name)
    base = Settings(name, arguments.hosts, 0, 1, arguments.warm_up, arguments.iterations,
                    arguments.by_name)
    runs = measurement.plan(base, arguments.gigabits, arguments.arms, arguments.repeats)
    if arguments.dry_run:
        seconds = sum(run.expected for run in measurement.left(runs, arguments.results))
        print(f"{len(runs)} runs; those left take about {seconds / 60:.0f} minutes")
        return
    failures = list(measurement.measure(runs, arguments.results, 60 * arguments.minutes))
    lines = measurement.lines_of(runs, arguments.results)
    # Above the table too, which somebody may paste without what stands below.
    doubts = summary.doubts(lines, os.cpu_count() or 1)
    busy = processors.described(lines)
    said = [f"This machine's {busy}."] if busy else []
    _print([*doubts, *summary.table(lines), *said, *doubts])
    if failures:
        sys.exit("\n".join(failures))


def profile(arguments: argparse.Namespace) -> None:
    """Writes the trace of a network."""
    import kvstore_ext  # noqa: F401 - before mxnet

    from benchmarks.replay.profile import profile

    source = shlex.join(["python", "-m", "benchmarks.replay", *sys.argv[1:]])
    made = profile(arguments.network, arguments.shape, arguments.seconds, source)
    made.save(arguments.output)
    print(f"{len(made.layers)} layers, {made.elements:,} parameters, {made.compute:.3f} s an "
          f"iteration of {made.batch} samples: {arguments.output}")


def traces(_arguments: argparse.Namespace) -> None:
    """Writes those of the papers' networks."""
    import kvstore_ext  # noqa: F401 - before mxnet

    from benchmarks.replay.published import traces

    for made in traces():
        made.save(trace.TRACES / f"{made.name}.json")
        print(f"{made.name}: {len(made.layers)} layers, {made.elements:,} parameters, "
              f"{made.batch / made.compute:.0f} samples/s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="measure arms at several bandwidths")
    one.set_defaults(function=run)
    one.add_argument("trace", help=f"{', '.join(trace.names())}, or a file of `profile`")
    one.add_argument("--results", type=Path, required=True, help="a file that a rerun goes on from")
    one.add_argument("--hosts", type=_from(int, 2), default=4, help="default: 4")
    one.add_argument("--gigabits", type=_from(float, 0.001), nargs="+", help="Gbit/s of each link")
    one.add_argument("--arms", nargs="+", choices=arms.names(), metavar="ARM",
                     help=", ".join(arms.names()))
    one.add_argument("--repeats", type=_from(int, 1), help="of every run, interleaved")
    one.add_argument("--iterations", type=_from(int, 1), help="that count, of every run")
    one.add_argument("--warm-up", type=_from(int, 0), default=2,
                     help="iterations that do not; default: 2")
    one.add_argument("--by-name", action="store_true",
                     help="number keys by sorted names, as gluon.Trainer does, not by layers")
    one.add_argument("--minutes", type=float, default=600,
                     help="no run ends later; default: 600")
    one.add_argument("--dry-run", action="store_true", help="say how long it takes, and end")
    one.add_argument("--quick", action="store_true",
                     help="two arms at one rate, once; the default takes hours")
    one = commands.add_parser("profile", help="make the trace of a network of yours")
    one.set_defaults(function=profile)
    one.add_argument("network", help="MODULE:FUNCTION that returns a HybridBlock")
    one.add_argument("--shape", type=_shape, action="append", required=True,
                     help="of an input, as 32,3,224,224; once for each")
    one.add_argument("--seconds", type=float,
                     help="that an iteration takes on your device, without communication; default: "
                     "what its operations would take on a Quadro P4000")
    one.add_argument("--output", type=Path, required=True, help="a file .json")
    one = commands.add_parser("traces", help="make the traces of the papers' networks again")
    one.set_defaults(function=traces)
    return parser


def _from(kind: Callable[[str], Any], least: float) -> Callable[[str], Any]:
    """Reads a number of at least so much."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < float("inf"):
            what = "whole numbers" if kind is int else "numbers"
            allowed = f"{what} from {least:g} on"
            raise argparse.ArgumentTypeError(f"found '{text}', allowed are {allowed}")
        return value

    return read


def _shape(text: str) -> Tuple[int, ...]:
    try:
        shape = tuple(int(size) for size in text.split(","))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; it must be as 32,3,224,224")
    return shape


def _print(lines: Any) -> None:
    found: List[str] = list(lines)
    print("\n".join(found))


if __name__ == "__main__":
    main()
