"""Result lines of a figure's runs as though they had been made."""
from __future__ import annotations

from typing import Any, Callable

from benchmarks.replay.measurement import Run

Result = dict[str, Any]


def lines_of(runs: list[Run], seconds: Callable[[Run], float]) -> list[Result]:
    """With so many seconds an iteration."""
    return [
        {"key": run.key, "arm": run.arm, **run.settings.described(), "repeat": run.repeat,
         "seconds": seconds(run), "sent": 1000, "received": 1000}
        for run in runs
    ]


def rows(text: str, first: str) -> list[list[str]]:
    """Cells of the lines of a document's tables that begin with such a cell."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]
    return [row for row in cells if row[0] == first]
