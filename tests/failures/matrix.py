"""What follows when any process of a job is lost, at any point of it; test_matrix.py loses them.

    python -m tests.failures.matrix

prints the tables of docs/failures.md.
"""
from __future__ import annotations

from typing import Callable, NamedTuple

ROLES = ("worker", "server", "scheduler")
PHASES = {
    "register": "while it registers",
    "first key": "before the first key",
    "push": "while gradients are pushed",
    "pull": "while parameters are pulled",
    "sparse": "in a round of a sparse key",
    "exit": "as the script ends",
}
HOW = ("killed", "stopped", "cut off")
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
# A cheap selection, in the order of all: what each mechanism ends, once.
SELECTED = [
    Cell("worker", "push", "cut off"),
    Cell("worker", "sparse", "stopped"),
    Cell("worker", "exit", "killed"),
    Cell("server", "first key", "killed"),
    Cell("server", "sparse", "killed"),
    Cell("server", "exit", "cut off"),
    Cell("scheduler", "register", "killed"),
    Cell("scheduler", "first key", "cut off"),
    Cell("scheduler", "push", "killed"),
    Cell("scheduler", "pull", "stopped"),
    Cell("scheduler", "exit", "killed"),
]

_LIMIT = f"within {LIMIT} s"
_INCOMPLETE = f"{_LIMIT} not all of 3 workers and 2 servers have come to"
_ALL_HAVE_COME = f"all have come to the scheduler, but {_LIMIT} no worker has opened its store"
_GONE = {
    "killed": r"the scheduler at [\d.:]+ is gone: its port is closed; the job goes on without it",
    "stopped": rf"the scheduler at [\d.:]+ has not been heard of for {LIMIT} s; the job goes on",
}
_GONE["cut off"] = _GONE["stopped"]
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
        words = {
            "worker": _INCOMPLETE,
            "server": f"{_INCOMPLETE}|{_ALL_HAVE_COME}",  # it may have come just before it was lost
            "scheduler": _INCOMPLETE if cell.how == "stopped" else unreachable,
        }
        return Outcome(False, words[cell.role])
    if cell.role == "scheduler":
        return Outcome(True, "" if cell.phase == "exit" else _GONE[cell.how])
    if cell.role == "worker":
        silent = rf"worker \d has not been heard of for {LIMIT} s"
        return Outcome(False, rf"{silent}, nor {_MISSED[cell.phase]}, which workers \d and \d did")
    if cell.phase == "exit":
        return Outcome(True, "")
    return Outcome(False, rf"no (answer|sign of life) from server \d.*, {_LIMIT}")


def expected_of_itself(cell: Cell) -> Outcome:
    """What is promised of a process that is cut off, which has lost all others."""
    if cell.phase == "register":
        unreachable = rf"the scheduler at [\d.:]+ cannot be reached {_LIMIT}"
        return Outcome(False, unreachable if cell.role == "worker" else _INCOMPLETE)
    if cell.role == "worker":
        return Outcome(False, rf"no (answer|sign of life) from servers 0 and 1.*, {_LIMIT}")
    if cell.role == "server":
        silent = f"workers 0, 1 and 2 have not been heard of for {LIMIT} s"
        return Outcome(False, rf"server \d: {silent}")
    return Outcome(False, rf"the scheduler has not heard of any worker or server for {LIMIT} s")


_SILENT = "worker 2 has not been heard of for S s"
_IN_WORDS = {
    "is gone": "`the scheduler at … is gone`",
    "scheduler at [\\d.:]+ has": "`the scheduler at … has not been heard of for S s`",
    "cannot be reached": "`the scheduler at … cannot be reached within T s`",
    "all have come": "`within T s not all of 3 workers and 2 servers have come to the scheduler`, "
    "or `all have come to the scheduler, but within T s no worker has opened its store`",
    "not all of": "`within T s not all of 3 workers and 2 servers have come to the scheduler`",
    "initialised": f"`{_SILENT}, nor initialised key …, which workers 0 and 1 did`",
    "pushed": f"`{_SILENT}, nor pushed key …, round …, which workers 0 and 1 did`",
    "closed": f"`{_SILENT}, nor closed its last store, which workers 0 and 1 did`",
    "from server \\d": "`no answer from server 1 for key …, within S s`, or "
    "`no sign of life from server 1, …`",
    "from servers": "`no answer from servers 0 and 1 for key …, within S s`, or "
    "`no sign of life from servers 0 and 1, …`",
    "workers 0, 1 and 2": "`workers 0, 1 and 2 have not been heard of for S s`",
    "not heard of any": "`the scheduler has not heard of any worker or server for S s`",
}


def table() -> str:
    """What follows for the others, in Markdown; cells of a role that come to the same in one row.
    """
    return _table(
        ["Lost", "When, and how", "The others end with", "Some of them say"], CELLS, expected
    )


def table_of_themselves() -> str:
    """What follows for processes that are cut off."""
    cells = [cell for cell in CELLS if cell.how == "cut off"]
    return _table(["Cut off", "When", "It ends with", "It says"], cells, expected_of_itself)


def _table(heads: list[str], cells: list[Cell], promise: Callable[[Cell], Outcome]) -> str:
    rows: dict[tuple[str, Outcome], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.role, promise(cell)), []).append(cell)
    lines = [f"| {' | '.join(heads)} |", "| --- | --- | --- | --- |"]
    for (role, outcome), alike in rows.items():
        when = ", ".join(dict.fromkeys(PHASES[cell.phase] for cell in alike))
        if promise is expected:
            *others, last = dict.fromkeys(cell.how for cell in alike)
            when += ": " + (f"{', '.join(others)} or {last}" if others else last)
        said = next((text for part, text in _IN_WORDS.items() if part in outcome.words), "nothing")
        status = "status 0, their work done" if outcome.well else "status 1"
        lines.append(f"| {role} | {when} | {status} | {said} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), table_of_themselves(), sep="\n", end="")
