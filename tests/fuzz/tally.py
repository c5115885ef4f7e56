"""How many runs a fuzz target has had, over all starts of `make fuzz`, on all machines.

    python -m tests.fuzz.tally

writes what this machine has counted into tests/fuzz/runs.json, from which others go on.
"""
from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterable

DIRECTORY = Path("build/fuzz/runs")
KEPT = Path(__file__).with_name("runs.json")


class Tally:
    """Of one target, in a file. Runs of other sources than those that are there now do not count:
    then it begins at 0 again. `runs` and `seconds`, of a processor, are those so far."""

    def __init__(self, target: str, program: str) -> None:
        self.runs, self.seconds = 0, 0.0
        self._target = target
        self._program = program
        self._path = DIRECTORY / f"{target}.json"
        for counted in (_read(KEPT).get(target, {}), _read(self._path)):
            if counted.get("program") == program and counted["runs"] > self.runs:
                self.runs, self.seconds = counted["runs"], counted["seconds"]

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


def keep() -> None:
    """Has the project keep what this machine has counted."""
    kept = _read(KEPT)
    kept.update({path.stem: _read(path) for path in DIRECTORY.glob("*.json")})
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def _read(path: Path) -> Dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


if __name__ == "__main__":
    keep()
