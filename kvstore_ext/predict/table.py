"""Predictions as text."""
from __future__ import annotations

from typing import Iterator, List, Sequence, Tuple

from .sweep import Row, best

EXACT = ("p3", "dist_sync", "stock_p3", "ring")  # sums of all gradients, as they are
# Stores of others, which mx.kv.create does not give to a job of ours, with at least the most by
# which a prediction of them was off: docs/prediction.md, and over BBR before that.
OFF = {"dist_sync": 0.16, "stock_p3": 0.10, "ring": 0.09}
_HEAD = f"{'store':<12} {'s/iteration':>12} {'samples/s':>11} {'of linear':>10}  limited by"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Lines: for each bandwidth and number of hosts the stores, and the best one."""
    for (gigabits, hosts), own in _groups(rows).items():
        yield f"{hosts} hosts, {gigabits:g} Gbit/s"
        yield f"  {_HEAD}"
        winner, ties = choose(own)
        for row in own:
            mark = "*" if row is winner else "=" if row in ties else " "
            figures = f"{row.seconds:>12.4f} {row.throughput:>11.0f} {100 * row.linear:>8.0f} %"
            yield f"{mark} {row.store:<12} {figures}  {row.limit}"
        yield f"  best: {_named(winner, ties)}"
        exact = [row for row in own if row.store in EXACT]
        if exact and winner.store not in EXACT:
            yield f"  best of those that train as dist_sync does: {_named(*choose(exact))}"
        yield ""


def choose(rows: Sequence[Row]) -> Tuple[Row, List[Row]]:
    """The best of the stores on one cluster, and those of others that are faster or slower by less
    than predictions of them may be off: with these it is a tie, in which ours is named first."""
    fastest = best(rows)[0]
    ours = [row for row in rows if row.store not in OFF]
    if not ours:
        return fastest, []
    own = best(ours)[0]
    others = [row for row in rows if row.store in OFF]
    if any(own.seconds > row.seconds * (1 + OFF[row.store]) for row in others):
        return fastest, []
    return own, [row for row in others if row.seconds <= own.seconds * (1 + OFF[row.store])]


def _named(winner: Row, ties: Sequence[Row]) -> str:
    found = f"{winner.store}, limited by {winner.limit}"
    if not ties:
        return found
    off = [f"{row.store} ({100 * OFF[row.store]:.0f} %)" for row in ties]
    return f"{found}; a tie with {', '.join(off)}, whose predictions were off by up to so much"


def _groups(rows: Sequence[Row]) -> dict:
    found: dict = {}
    for row in rows:
        found.setdefault((row.gigabits, row.hosts), []).append(row)
    return found


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> List[str]:
    """A table for a document, its first column left and the others right."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *lines)]
