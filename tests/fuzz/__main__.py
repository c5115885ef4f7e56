"""Runs the fuzz targets of Python: `python -m tests.fuzz`, as `make fuzz` does."""
from __future__ import annotations

import argparse
import atexit
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any, Set

from kvstore_ext import __file__ as package

from . import targets
from .mutations import Mutations
from .tally import Tally, digest_of
from .targets import TARGETS

atexit.register(shutil.rmtree, targets._directory, ignore_errors=True)

CORPUS = Path(__file__).parent / "corpus"
_PIECE = 10.0  # seconds after which the runs so far are written down


def main() -> int:
    """Raises what a target has raised and may not, and shows for what."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=10_000_000, help="of each target, earlier ones included")
    parser.add_argument("--seconds", type=float, help="of each target, at most so many now")
    parser.add_argument("--seed", type=int, help="of the random numbers")
    parser.add_argument("targets", nargs="*", help=f"{', '.join(TARGETS)}; all by default")
    options = parser.parse_args()
    seed = time.time_ns() % (1 << 32) if options.seed is None else options.seed
    for name in options.targets or TARGETS:
        tally = Tally(name, digest_of(_sources(name)))
        _run(name, options.runs, options.seconds, seed, tally)
        print(tally.said(options.runs), flush=True)
    return 0


def _run(name: str, goal: int, seconds: float | None, seed: int, tally: Tally) -> None:
    """Raises what the target raises."""
    seeds = seeds_of(name)
    mutations = Mutations(seeds, seed)
    begun = noted = time.monotonic()
    used = time.process_time()
    end = float("inf") if seconds is None else begun + seconds
    run = 0
    noted_runs = 0
    while tally.runs + run - noted_runs < goal:
        data = seeds[run] if run < len(seeds) else mutations.next()
        try:
            TARGETS[name](data)
        except BaseException:
            print(f"{name} raises for {data[:2000]!r}, run {run} of seed {seed}", file=sys.stderr)
            raise
        run += 1
        now = time.monotonic()
        if now - noted > _PIECE or now > end:
            tally.add(run - noted_runs, time.process_time() - used)
            noted, noted_runs, used = now, run, time.process_time()
        if now > end:
            return
    tally.add(run - noted_runs, time.process_time() - used)


def _sources(name: str) -> Set[Path]:
    """The package's files through which a target runs with its seeds, and the fuzzer's own."""
    found = {str(Path(__file__).with_name(each)) for each in ("mutations.py", "targets.py")}

    def note(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        # An import is another target's where that came first.
        if code.co_filename.startswith(str(Path(package).parent)) and code.co_name != "<module>":
            found.add(code.co_filename)

    # Threads that a target begins as well.
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        for data in seeds_of(name):
            TARGETS[name](data)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {Path(path) for path in found}


def seeds_of(name: str) -> list[bytes]:
    """What a target begins with."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


if __name__ == "__main__":
    sys.exit(main())
