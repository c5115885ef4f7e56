"""Runs a fuzz target of the core in pieces, as `make fuzz` does, and goes on where it stopped."""
from __future__ import annotations

import argparse
import contextlib
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, List, Sequence

from .tally import Tally, digest_of

# Seconds after which the runs so far are written down. Each piece begins with the corpus once more.
_PIECE = 600.0
_HERE = Path(__file__).parent
_CORE_TESTS = _HERE.parent / "core"
_CORE = _HERE.parents[1] / "kvstore_ext" / "csrc"
_INTERRUPTED = 130  # a shell's status after Ctrl-C
_EXECUTED = re.compile(rb"stat::number_of_executed_units:\s*(\d+)")


def main() -> int:
    """Returns the target's own status once it has found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.programs", description=__doc__)
    parser.add_argument("program", type=Path, help="the target, as libFuzzer runs it")
    parser.add_argument("--runs", type=int, default=10_000_000, help="earlier ones included")
    parser.add_argument("--seconds", type=float, help="at most so many now")
    parser.add_argument("--corpus", type=Path, action="append", default=[], help="directories")
    options, fuzzers = parser.parse_known_args()  # what it does not know is libFuzzer's
    tally = Tally(options.program.name, digest_of(_sources(options.program.name)))
    end = None if options.seconds is None else time.monotonic() + options.seconds
    while tally.runs < options.runs:
        left = _PIECE if end is None else min(_PIECE, end - time.monotonic())
        if left < 1:
            break
        status = _run_piece(options.program, fuzzers, options.corpus, options.runs, left, tally)
        if status == _INTERRUPTED:
            print(f"{tally.said(options.runs)}; stopped", file=sys.stderr)
            return status
        if status != 0:
            print(f"{tally.said(options.runs)}; the last has found something", file=sys.stderr)
            return status
    print(tally.said(options.runs), flush=True)
    return 0


def _run_piece(
    program: Path,
    fuzzers: Sequence[str],
    corpus: Sequence[Path],
    goal: int,
    seconds: float,
    tally: Tally,
) -> int:
    """Adds what libFuzzer says that it has run, and returns its status. It runs what is in the
    corpus first, which is not counted: that is the same each time."""
    known = sum(1 for directory in corpus for _ in directory.iterdir())
    limits = [f"-runs={goal - tally.runs + known}", f"-max_total_time={max(1, int(seconds))}"]
    command = [str(program.resolve()), *fuzzers, *limits, "-print_final_stats=1"]
    begun = _used()
    with _noted() as interrupted:  # the program then says how many runs it has had, and ends
        process = subprocess.run([*command, *map(str, corpus)], stderr=subprocess.PIPE)
    said = process.stderr
    executed = _EXECUTED.search(said)
    if executed:
        tally.add(max(0, int(executed[1]) - known), _used() - begun)
    if interrupted:
        return _INTERRUPTED
    if process.returncode != 0 or not executed:
        sys.stderr.buffer.write(said)
        return process.returncode or 1
    return 0


def _sources(target: str) -> List[Path]:
    """What its program is compiled from, and how."""
    own = [_HERE / f"{target}.cc", *(_HERE / name for name in ("keys.cc", "by_hand.cc", "fuzz.mk"))]
    core = [path for path in _CORE.rglob("*") if path.suffix in (".cc", ".h", ".inc")]
    tests = [*_CORE_TESTS.glob("*.h"), _CORE_TESTS / "sanitize.mk"]
    return [*core, *tests, *_HERE.glob("*.h"), *own]


def _used() -> float:
    """The seconds of a processor that programs have had so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def _noted() -> Iterator[List[int]]:
    """Where Ctrl-C ends no more than the program, it notes it."""
    signals: List[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: signals.append(number))
    try:
        yield signals
    finally:
        signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    sys.exit(main())
