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
LIMIT = 6  # seconds: the stores' options timeout and silence


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

_LIMIT = f"within {LIMIT} s"
_INCOMPLETE = f"{_LIMIT} not all of 3 workers and 2 servers have come to"
_GONE = {
    "killed": r"the scheduler at [\d.:]+ is gone: its port is closed; the job goes on without it",
    "stopped": rf"the scheduler at [\d.:]+ has not been heard of for {LIMIT} s; the job goes on",
}
_PUSHED = r"pushed key '?\w+'?, round \d+"
_MISSED = {  # what a worker that is lost then does not do
    "first key": r"initialised key \d+, round 0",
    "push": _PUSHED,
    "pull": _PUSHED,
    "sparse": _PUSHED,
    "exit": "closed its last store",
}


def expected(cell: Cell) -> Outcome:
    """What is promised of a cell."""
    if cell.phase == "register":
        unreachable = rf"the scheduler at [\d.:]+ cannot be reached {_LIMIT}"
        of_scheduler = unreachable if cell.how == "killed" else _INCOMPLETE
        # A server may have come to the scheduler just before.
        of_server = f"{_INCOMPLETE}|but {_LIMIT} no worker has opened its store"
        words = {"worker": _INCOMPLETE, "server": of_server, "scheduler": of_scheduler}
        return Outcome(False, words[cell.role])
    if cell.role == "scheduler":
        return Outcome(True, "" if cell.phase == "exit" else _GONE[cell.how])
    if cell.role == "worker":
        silent = rf"worker \d has not been heard of for {LIMIT} s"
        return Outcome(False, rf"{silent}, nor {_MISSED[cell.phase]}, which workers \d and \d did")
    return Outcome(False, rf"no (answer|sign of life) from server \d.*, {_LIMIT}")


_SILENT = "worker 2 has not been heard of for S s"
_IN_WORDS = {
    "is gone": "`the scheduler at … is gone`",
    "scheduler at [\\d.:]+ has": "`the scheduler at … has not been heard of for S s`",
    "cannot be reached": "`the scheduler at … cannot be reached within T s`",
    "|but": "`within T s not all of 3 workers and 2 servers have come to the scheduler`, or "
    "`all have come to the scheduler, but within T s no worker has opened its store`",
    "not all of": "`within T s not all of 3 workers and 2 servers have come to the scheduler`",
    "initialised": f"`{_SILENT}, nor initialised key …, which workers 0 and 1 did`",
    "pushed": f"`{_SILENT}, nor pushed key …, round …, which workers 0 and 1 did`",
    "closed": f"`{_SILENT}, nor closed its last store, which workers 0 and 1 did`",
    "from server": "`no answer from server 1 for key …, within S s`, or "
    "`no sign of life from server 1, …`",
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
