"""Measures what predictions are compared with and no figure has: every store, with AlexNet too.

    python -m benchmarks.prediction.further

writes docs/figures/prediction.jsonl, and goes on where it stopped. It needs root, as figures do.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import List

from benchmarks.figures.extent import FULL
from benchmarks.replay import measurement
from benchmarks.replay.endings import in_one_line
from benchmarks.replay.job import Settings

_RESULTS = Path(__file__).parents[2] / "docs" / "figures" / "prediction.jsonl"
DENSE = ("p3", "dist_sync", "stock_p3", "horovod")
CODED = ("fp16", "qsgd", "terngrad", "onebit", "signsgd", "dgc", "2bit", "slim_dp")
# Networks, hosts, Gbit/s and arms, as different as they can be in half an hour.
SETTINGS = (
    ("alexnet", 4, 10.0, DENSE),
    ("alexnet", 4, 4.0, ("terngrad",)),
    ("inceptionv3", 4, 1.0, CODED),
    ("googlenet", 8, 1.0, (*DENSE, *CODED)),
    ("googlenet", 16, 1.0, DENSE),
)
# Of EC-DNN, whose iterations are rounds of many steps: fewer of them.
ROUNDS = (
    ("alexnet", 4, 10.0), ("resnet50", 4, 1.0), ("resnet50", 4, 4.0), ("inceptionv3", 2, 1.0),
    ("googlenet", 8, 1.0),
)


def runs() -> List[measurement.Run]:
    """All that it takes, once each."""
    plans = [
        measurement.plan(
            Settings(trace, hosts, 0, 1, FULL.warm_up, FULL.iterations), [gigabits], arms, 1)
        for trace, hosts, gigabits, arms in SETTINGS
    ]
    plans += [
        measurement.plan(Settings(trace, hosts, 0, 1, 1, 3), [gigabits], ["ec_dnn"], 1)
        for trace, hosts, gigabits in ROUNDS
    ]
    return measurement.interleaved(*plans)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction.further")
    parser.add_argument("--minutes", type=float, default=600,
                        help="no run ends later; default: 600")
    parser.add_argument("--dry-run", action="store_true", help="say how long it takes, and end")
    arguments = parser.parse_args()
    wanted = runs()
    if arguments.dry_run:
        left = measurement.left(wanted, _RESULTS)
        for run in left:
            print(f"{run.settings.trace}, {run.settings.hosts} hosts, {run}: {run.expected:.0f} s")
        print(f"{len(left)} runs, about {sum(run.expected for run in left) / 60:.0f} minutes")
        return
    with in_one_line():
        failures = list(measurement.measure(wanted, _RESULTS, 60 * arguments.minutes))
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
