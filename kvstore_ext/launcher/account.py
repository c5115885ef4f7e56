"""What a process has told of itself: see kvstore_ext/launch_reports.py."""

from __future__ import annotations

import asyncio
from typing import Any

from .protocol import Message


class Account:
    """What one process has reported. `joined` is done once the cluster stands, as it sees it.

    `rank` is a worker's or server's in the cluster, once it has said so, and rarely the launcher's
    is another.
    `step` is how many steps its run has behind it, as a process that fails says.
    `told`: it was told to end. `snapshot`: how the job ends then, in words that go behind "ended".
    `status` is its last one, as kvstore_ext/status_reports.py has it; empty before.
    `sent` and `received` are bytes; `reason` is why it failed, empty while it has not said so, and
    `latest_reason` the last that it has said: what has kept it from ending as it was told, say.
    Make it inside the event loop.
    """

    def __init__(self) -> None:
        self.joining = False
        self.joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.rank: int | None = None
        self.sent = 0
        self.received = 0
        self.reason = ""
        self.latest_reason = ""
        self.told = False
        self.step: int | None = None
        self.snapshot = ""
        self.status: dict[str, Any] = {}

    def take(self, report: Message) -> None:
        """Adds a report; what is unknown or malformed does not count."""
        if report.get("joining") is True:
            self.joining = True
        if report.get("joined") is True and not self.joined.done():
            self.joining = True
            # Of a store before this one, which the script has done without.
            self.reason = self.latest_reason = ""
            self.joined.set_result(None)
            rank = report.get("rank")
            self.rank = rank if isinstance(rank, int) else None
        traffic = report.get("traffic")
        if isinstance(traffic, dict):
            self.sent += _bytes(traffic.get("sent"))
            self.received += _bytes(traffic.get("received"))
        step = report.get("step")
        self.step = step if isinstance(step, int) else self.step
        self.told |= report.get("told") is True
        snapshot = report.get("snapshot")
        self.snapshot = snapshot if isinstance(snapshot, str) else self.snapshot
        status = report.get("status")
        if isinstance(status, dict) and is_status(status):
            self.status = status
        reason = report.get("failed")
        if isinstance(reason, str) and reason:
            self.reason = self.reason or reason
            self.latest_reason = reason


def is_status(status: dict[str, Any]) -> bool:
    """Returns whether all that it says can be counted with."""
    figures = [value for name, value in status.items() if name != "workers"]
    entries = status.get("workers", [])
    if not isinstance(entries, list) or "at" not in status:
        return False
    if not all(isinstance(entry, list) and len(entry) == 3 for entry in entries):
        return False
    figures += [value for entry in entries for value in entry]
    return all(type(value) in (int, float) and 0 <= value < float("inf") for value in figures)


def size(count: int) -> str:
    """Returns so many bytes in words of three digits: 12.3 MB."""
    value, units = float(count), ["B", "kB", "MB", "GB", "TB", "PB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        del units[0]
    digits = 0 if units[0] == "B" or value >= 99.95 else 1
    return f"{value:.{digits}f} {units[0]}"


def _bytes(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
