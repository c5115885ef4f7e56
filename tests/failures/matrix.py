"""What follows when any process of a job is lost, at any point of it; test_matrix.py loses them.

    python -m tests.failures.matrix

prints the table of docs/failures.md.
"""
from __future__ import annotations

from typing import NamedTuple

ROLES = ("worker", "server", "scheduler")
PHASES = {
    "register": "while it registers",
    "first key": "before the first key",
    "push": "while gradients are pushed",
    "pull": "while parameters are pulled",
    "sparse": "in a round of a sparse key",
    "exit": "as the script ends",
}
HOW = ("killed", "stopped")
TIMEOUT = 6  # seconds: the stores' option


class Cell(NamedTuple):
    """Who is lost, when and how: a job of three workers and two servers."""

    role: str
    phase: str
    how: str


class Outcome(NamedTuple):
    """What the others do: end with status 0 if `well`, and what some of them say, as a pattern."""

    well: bool
    words: str


CELLS = [Cell(role, phase, how) for role in ROLES for phase in PHASES for how in HOW]
# A cheap selection: what each mechanism ends, once.
SELECTED = [
    Cell("worker", "sparse", "stopped"),
    Cell("worker", "exit", "killed"),
    Cell("server", "first key", "killed"),
    Cell("server", "sparse", "killed"),
    Cell("scheduler", "register", "killed"),
    Cell("scheduler", "push", "killed"),
    Cell("scheduler", "pull", "stopped"),
    Cell("scheduler", "exit", "killed"),
]

_LIMIT = f"within {TIMEOUT} s"
_INCOMPLETE = f"{_LIMIT} not all of 3 workers and 2 servers have come to"
_GONE = {
    "killed": r"the scheduler at [\d.:]+ is gone: its port is closed; the job goes on without it",
    "stopped": rf"the scheduler at [\d.:]+ has not been heard of for {TIMEOUT} s; the job goes on",
}
_OF_WORKER = {
    "first key": r"worker \d has not initialised key \d+, round 0, which workers \d and \d did",
    "push": r"worker \d has not pushed key '?\w+'?, round \d+, which workers \d and \d did",
    "pull": r"worker \d has not pushed key '?\w+'?, round \d+, which workers \d and \d did",
    "sparse": r"worker \d has not pushed key '?\w+'?, round \d+, which workers \d and \d did",
    "exit": r"worker \d has not closed its last store, which workers \d and \d did",
}


def expected(cell: Cell) -> Outcome:
    """What is promised of a cell."""
    if cell.phase == "register":
        unreachable = rf"the scheduler at [\d.:]+ cannot be reached {_LIMIT}"
        of_scheduler = unreachable if cell.how == "killed" else _INCOMPLETE
        return Outcome(False, of_scheduler if cell.role == "scheduler" else _INCOMPLETE)
    if cell.role == "scheduler":
        return Outcome(True, "" if cell.phase == "exit" else _GONE[cell.how])
    if cell.role == "worker":
        return Outcome(False, rf"{_OF_WORKER[cell.phase]}, {_LIMIT}")
    return Outcome(False, rf"no (answer|sign of life) from server \d.*, {_LIMIT}")


_IN_WORDS = {
    "is gone": "`the scheduler at … is gone`",
    "has not been heard of": "`the scheduler at … has not been heard of for T s`",
    "cannot be reached": "`the scheduler at … cannot be reached within T s`",
    "not all of": "`within T s not all of 3 workers and 2 servers have come to the scheduler`",
    "initialised": "`worker 2 has not initialised key …, which workers 0 and 1 did, within T s`",
    "pushed": "`worker 2 has not pushed key …, round …, which workers 0 and 1 did, within T s`",
    "closed": "`worker 2 has not closed its last store, which workers 0 and 1 did, within T s`",
    "from server": "`no answer from server 1 for key …`, or `no sign of life from server 1`",
}


def table() -> str:
    """All cells, in Markdown; those of a role that come to the same in one row."""
    rows: dict[tuple[str, Outcome], list[Cell]] = {}
    for cell in CELLS:
        rows.setdefault((cell.role, expected(cell)), []).append(cell)
    lines = [
        "| Lost | When, and how | The others end with | Some of them say |",
        "| --- | --- | --- | --- |",
    ]
    for (role, outcome), cells in rows.items():
        when = ", ".join(dict.fromkeys(PHASES[cell.phase] for cell in cells))
        how = " or ".join(dict.fromkeys(cell.how for cell in cells))
        said = next((text for part, text in _IN_WORDS.items() if part in outcome.words), "nothing")
        status = "status 0, their work done" if outcome.well else "status 1"
        lines.append(f"| {role} | {when}: {how} | {status} | {said} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
