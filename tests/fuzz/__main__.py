"""Runs the fuzz targets of Python: `python -m tests.fuzz`, as `make fuzz` does."""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from .mutations import Mutations
from .targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"


def main() -> int:
    """Returns 1 once a target has raised what it may not, and shows that."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000_000, help="of each target")
    parser.add_argument("--seconds", type=float, help="of each target, instead of runs")
    parser.add_argument("--seed", type=int, help="of the random numbers")
    parser.add_argument("targets", nargs="*", help=f"{', '.join(TARGETS)}; all by default")
    options = parser.parse_args()
    seed = time.time_ns() % (1 << 32) if options.seed is None else options.seed
    for name in options.targets or TARGETS:
        if not _run(name, options.runs, options.seconds, seed):
            return 1
    return 0


def _run(name: str, runs: int, seconds: float | None, seed: int) -> bool:
    """Whether a target has come to its end."""
    seeds = seeds_of(name)
    mutations = Mutations(seeds, seed)
    begun = time.monotonic()
    run = 0
    while run < runs if seconds is None else time.monotonic() - begun < seconds:
        data = seeds[run] if run < len(seeds) else mutations.next()
        try:
            TARGETS[name](data)
        except BaseException:
            print(f"{name} raises for {data[:2000]!r}, run {run} of seed {seed}", file=sys.stderr)
            raise
        run += 1
    print(f"{name}: {run} runs in {time.monotonic() - begun:.0f} s")
    return True


def seeds_of(name: str) -> list[bytes]:
    """What a target begins with."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


if __name__ == "__main__":
    sys.exit(main())
