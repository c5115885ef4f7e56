"""What is going on in a job, from what its processes tell: the figures of one moment.

Whoever shows them, on a terminal, in a file or to Prometheus, takes them from here, so that all
say the same.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Sequence

from .account import size
from .running import Running, stands

# A figure's rate is over this many of the last reports, which come once a second.
_LAST = 5
# A process that has not reported for so many seconds is stopped, or its host is: it has no rates.
_SILENT = 5.0
# A worker is no straggler whose pushes come so many seconds after the first one's: that is jitter.
_NOT_LATE = 0.01

Row = Dict[str, Any]


@dataclass
class Follower:
    """Makes rates of one process's counters. `rows` has its last reports, oldest first, and `heard`
    is when the last one came, of the launcher's monotonic clock.

    One counter, `counted`, may stand still for longer than they reach back: a step on a slow link
    takes a minute. `steps` has the reports with which it had grown, at least the last two.
    """

    counted: str
    rows: list[Row] = field(default_factory=list)
    steps: list[Row] = field(default_factory=list)
    heard: float = 0.0

    def take(self, row: Row) -> None:
        """Adds a report, unless it is there already."""
        if self.rows and row.get("at") == self.rows[-1].get("at"):
            return
        if self.rows and row.get("at", 0.0) < self.rows[-1].get("at", 0.0):
            self.rows, self.steps = [], []  # of an earlier store or attempt
        self.rows = [*self.rows, row][-_LAST:]
        self.heard = time.monotonic()
        name = self.counted
        if not self.steps or row.get(name) != self.steps[-1].get(name):
            self.steps.append(row)
        # Before the first step much else is done.
        while len(self.steps) > 2 and (
            self.steps[1]["at"] <= self.rows[0]["at"] or not self.steps[0].get(name)
        ):
            del self.steps[0]

    def total(self, name: str) -> float:
        """Returns what a counter has come to; 0 where nothing was reported."""
        return float(self.rows[-1].get(name, 0)) if self.rows else 0.0

    def rate(self, name: str) -> float:
        """Returns how much a counter has grown each second, lately."""
        return self._rate(name, self.rows)

    def pace(self) -> float:
        """Returns how many steps there were each second, over two steps at least; fewer, once one
        takes longer than those."""
        pace = self._rate(self.counted, self.steps)
        since = self.rows[-1]["at"] - self.steps[-1]["at"] if self.rows else 0.0
        return min(pace, 1 / since) if since > 0 else pace

    def share(self, name: str) -> float:
        """Returns how much a counter of seconds has grown each second since the first of those
        steps, or else lately."""
        first = self.steps if len(self.steps) > 1 else self.rows
        return min(1.0, self._rate(name, [*first[:1], *self.rows[-1:]]))

    def each(self, name: str) -> float:
        """Returns how much a counter has grown with each of those steps."""
        pace = self._rate(self.counted, self.steps)
        return self._rate(name, self.steps) / pace if pace else 0.0

    def _rate(self, name: str, rows: list[Row]) -> float:
        silent = time.monotonic() - self.heard > _SILENT
        if silent or not rows or rows[0] is rows[-1]:
            return 0.0
        first, last = rows[0], rows[-1]
        grown = last.get(name, 0) - first.get(name, 0)
        return max(0.0, grown / (last["at"] - first["at"]))


class Status:
    """Follows the processes of a job: `look` is to be called about once a second."""

    def __init__(self) -> None:
        self._followers: dict[str, Follower] = {}
        self._late: dict[tuple[str, int], Follower] = {}

    def look(self, running: Sequence[Running]) -> Row:
        """Returns what one can say of the job now, as JSON has it.

        "processes" has a row each: role, rank, host, state, steps (of its run), made (those of this
        job), sent and received (bytes since the beginning), steps_rate, sent_rate and received_rate
        (a second), waiting (a share of the last seconds or steps), held (bytes of a server) and
        late (seconds, lately, by which a worker's pushes came after the first worker's; or for
        which it keeps the others waiting). A state is starts, runs, ended, failed, or stopped by
        the launcher.
        "slowest" is the worker that was last of all for that long, or None. "measured": all workers
        that have not ended have reported twice, so that there are rates.
        """
        late = self._lateness(running)
        cluster_stands = stands(running)
        rows = [self._row(each, late, cluster_stands) for each in running]
        workers = [row for row in rows if row["role"] == "worker"]
        training = [
            (each, row) for each, row in zip(running, rows)
            if row["role"] == "worker" and not each.ended.done()
        ]
        waiting = [row["waiting"] for each, row in training if self._has_rates(each)]
        slowest = max(workers, key=lambda row: row["late"], default=None)
        if slowest is None or len(workers) < 2 or slowest["late"] < _NOT_LATE:
            slowest = None
        return {
            "time": time.time(),
            "state": "running",
            "processes": rows,
            "slowest": slowest and f"worker {slowest['rank']}",
            "measured": all(self._has_rates(each) for each, _ in training),
            "steps_rate": min((row["steps_rate"] for _, row in training), default=0.0),
            "waiting": _mean(waiting),
            "sent_rate": sum(row["sent_rate"] for row in workers),
            "received_rate": sum(row["received_rate"] for row in workers),
        }

    def _has_rates(self, running: Running) -> bool:
        return len(self._followers[running.process.name].rows) > 1

    def _row(self, running: Running, late: dict[int, float], stands: bool) -> Row:
        process, account = running.process, running.account
        follower = self._followers.setdefault(process.name, Follower("made"))
        if account.status:
            follower.take(account.status)
        ended = running.ended.done()
        rank = process.rank if account.rank is None else account.rank
        row: Row = {
            "role": process.role,
            "rank": rank,
            "host": running.host,
            "state": _state(running, stands),
            "late": late.get(rank or 0, 0.0) if process.role == "worker" and not ended else 0.0,
            "held": int(follower.total("held")),
        }
        for name in ("steps", "made", "sent", "received"):
            row[name] = int(follower.total(name))
        row["steps_rate"] = 0.0 if ended else follower.pace()
        for name in ("sent", "received"):
            row[f"{name}_rate"] = 0.0 if ended else follower.rate(name)
        row["waiting"] = 0.0 if ended else follower.share("waiting")
        return row

    def _lateness(self, running: Sequence[Running]) -> dict[int, float]:
        """Returns each worker's lateness in seconds by rank, as the server sees it that waits
        longest."""
        found: dict[int, float] = {}
        for each in running:
            for rank, entry in enumerate(each.account.status.get("workers", ())):
                pushes, late, missing = entry
                follower = self._late.setdefault((each.process.name, rank), Follower("pushes"))
                at = each.account.status["at"]
                follower.take({"at": at, "pushes": pushes, "late": late})
                found[rank] = max(found.get(rank, 0.0), follower.each("late"), missing)
        return found


def line(status: Row, columns: int | None = None) -> str:
    """Returns the job in one line, as --status shows it, of at most so many characters: what fits,
    and the slowest worker before the traffic."""
    steps = max((row["steps"] for row in status["processes"]), default=0)
    if not steps:
        return "no step yet"
    if not status["measured"]:
        return f"step {steps}, no figures yet"
    traffic = f"{size(round(status['sent_rate']))}/s sent, "
    traffic += f"{size(round(status['received_rate']))}/s received"
    slowest = f"slowest: {late(status)}" if status["slowest"] else "no worker is late"
    parts = [f"{pace(status['steps_rate'])} steps/s", f"{status['waiting']:.0%} waiting"]
    text = ", ".join([*parts, slowest, traffic])
    if columns is not None and len(text) > columns:
        text = ", ".join([*parts, slowest])
    return text if columns is None else text[:columns]


def pace(rate: float) -> str:
    """Returns steps a second as they are shown."""
    return f"{rate:.2g}" if 0 < rate < 1 else f"{rate:.1f}"


def late(status: Row) -> str:
    """Returns the slowest worker, and by how much it is late, in words."""
    row = next(
        row
        for row in status["processes"]
        if row["role"] == "worker" and f"worker {row['rank']}" == status["slowest"]
    )
    return f"{status['slowest']} on {row['host']}, {row['late']:.2g} s late"


def _state(running: Running, stands: bool) -> str:
    """Returns what a process does; the scheduler reports nothing but its start, and runs once any
    other process says that the cluster stands."""
    if running.ended.done():
        failed = "stopped" if running.was_stopped else "failed"
        return "ended" if running.ended.result().status == 0 else failed
    joined = running.account.joined.done()
    joined |= stands and running.process.role == "scheduler"
    return "runs" if joined else "starts"


def _mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else 0.0
