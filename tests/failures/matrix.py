"""What follows when any process of a job is lost, at any point of it; test_matrix.py loses them.

    python -m tests.failures.matrix

prints the tables of docs/failures.md.
"""
from __future__ import annotations

from typing import Callable, Mapping, NamedTuple

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
LIMIT = 6  # seconds: the stores' option silence, and timeout where that is what ends the job
STARTING = 90  # seconds: timeout elsewhere, since a busy machine's processes come one by one


class Cell(NamedTuple):
    """Who is lost, when and how: a job of three workers and two servers."""

    role: str
    phase: str
    how: str

    @property
    def name(self) -> str:
        """In one word, as tests and commands are given it."""
        return "-".join(self).replace(" ", "_")

    def options(self, timeout: int = LIMIT) -> dict[str, int]:
        """Of the stores of a job that loses a process so; `timeout` where that is what ends it."""
        others = {"silence": LIMIT, "patience": 0}
        return {"timeout": timeout if self.phase == "register" else STARTING, **others}


class Outcome(NamedTuple):
    """What the others do: end with status 0 if `well`, and what each of them says, as a pattern."""

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


def _unreachable(timeout: int = LIMIT) -> str:
    return rf"the scheduler at [\d.:]+ cannot be reached within {timeout} s"


def _incomplete(timeout: int = LIMIT) -> str:
    return f"within {timeout} s not all of 3 workers and 2 servers have come to"


def expected(cell: Cell, timeout: int = LIMIT) -> Outcome:
    """What is promised of a cell of a job with this option."""
    if cell.phase == "register":
        all_ = f"all have come to the scheduler, but within {timeout} s no worker has opened"
        words = {
            "worker": _incomplete(timeout),
            # It may have come just before it was lost.
            "server": f"{_incomplete(timeout)}|{all_} its store",
            "scheduler": (_incomplete if cell.how == "stopped" else _unreachable)(timeout),
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
        return Outcome(False, _incomplete() if cell.role == "scheduler" else _unreachable())
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
    "all have come": "`within T s not all of 3 workers and 2 servers have come to`, "
    "or `all have come to the scheduler, but within T s no worker has opened its store`",
    "not all of": "`within T s not all of 3 workers and 2 servers have come to`",
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
        ["Lost", "When, and how", "The others end with", "Each of them says"], CELLS, expected
    )


def table_of_themselves() -> str:
    """What follows for processes that are cut off."""
    cells = [cell for cell in CELLS if cell.how == "cut off"]
    return _table(["Cut off", "When", "It ends with", "It says"], cells, expected_of_itself)


def table_of_seconds(seconds: Mapping[Cell, tuple[float, float | None]]) -> str:
    """After how many seconds the others had ended, or said that they go on, and whoever was cut off
    had ended; those that were not measured have a dash."""
    lines = [f"| Lost | When | {' | '.join(HOW)} | itself, cut off |", "| --- " * 6 + "|"]
    for role in ROLES:
        for phase, when in PHASES.items():
            cells = [Cell(role, phase, how) for how in HOW]
            numbers = [seconds.get(cell, (None, None))[0] for cell in cells]
            numbers.append(seconds.get(cells[-1], (None, None))[1])
            shown = ["-" if number is None else f"{number:.1f}" for number in numbers]
            lines.append(f"| {role} | {when} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


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
