"""Predictions as text."""
from __future__ import annotations

from typing import Iterator, List, Sequence

from .sweep import Row, best

EXACT = ("p3", "dist_sync", "stock_p3", "ring")  # sums of all gradients, as they are
_HEAD = f"{'store':<12} {'s/iteration':>12} {'samples/s':>11} {'of linear':>10}  limited by"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Lines: for each bandwidth and number of hosts the stores, and the best one."""
    chosen = {(row.gigabits, row.hosts): row for row in best(rows)}
    for (gigabits, hosts), own in _groups(rows).items():
        yield f"{hosts} hosts, {gigabits:g} Gbit/s"
        yield f"  {_HEAD}"
        for row in own:
            mark = "*" if row is chosen[gigabits, hosts] else " "
            figures = f"{row.seconds:>12.4f} {row.throughput:>11.0f} {100 * row.linear:>8.0f} %"
            yield f"{mark} {row.store:<12} {figures}  {row.limit}"
        winner = chosen[gigabits, hosts]
        yield f"  best: {winner.store}, limited by {winner.limit}"
        exact = [row for row in own if row.store in EXACT]
        if exact and winner.store not in EXACT:
            other = best(exact)[0]
            found = f"{other.store}, limited by {other.limit}"
            yield f"  best of those that train as dist_sync does: {found}"
        yield ""


def _groups(rows: Sequence[Row]) -> dict:
    found: dict = {}
    for row in rows:
        found.setdefault((row.gigabits, row.hosts), []).append(row)
    return found


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> List[str]:
    """A table for a document, its first column left and the others right."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *lines)]
