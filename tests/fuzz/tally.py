"""How many runs a fuzz target has had, over all starts of `make fuzz`."""
from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Iterable

DIRECTORY = Path("build/fuzz/runs")


class Tally:
    """Of one target, in a file. Runs of another program than the one that is there now do not
    count: then it begins at 0 again. `runs` and `seconds`, of a processor, are those so far."""

    def __init__(self, target: str, program: str, directory: Path | None = None) -> None:
        self.runs, self.seconds = 0, 0.0
        self._target = target
        self._program = program
        self._path = (directory or DIRECTORY) / f"{target}.json"
        if not self._path.exists():
            return
        kept = json.loads(self._path.read_text())
        if kept["program"] == program:
            self.runs, self.seconds = kept["runs"], kept["seconds"]

    def add(self, runs: int, seconds: float) -> None:
        """Writes them down at once: whoever stops `make fuzz` loses what was not added yet."""
        self.runs += runs
        self.seconds += seconds
        kept = {"program": self._program, "runs": self.runs, "seconds": round(self.seconds, 1)}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_suffix(".new")
        unfinished.write_text(json.dumps(kept))
        os.replace(unfinished, self._path)

    def said(self, goal: int) -> str:
        """For people."""
        rate = f", {self.runs / self.seconds:,.0f} a second" if self.seconds >= 1 else ""
        runs = f"{self.runs:,} of {goal:,} runs"
        return f"{self._target}: {runs} in {self.seconds:.0f} s of a processor{rate}"


def digest_of(files: Iterable[Path]) -> str:
    """Of a program, of which these are all files."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()
