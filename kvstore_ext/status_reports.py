"""Once a second, what this process is doing, for who watches the job beside it.

    {"status": {"at": 81.2, "steps": 4040, "made": 40, "waiting": 3.1, "sent": 10, "received": 9}}

is a worker's: `at` is its own clock in seconds, `steps` is how many its run has behind it, those of
an earlier job included. The others have added up since it began, in steps, seconds and bytes;
`waiting` is the time in which the script needed parameters that were on their
way. A server says `held`, bytes of values and open sums, instead of steps, made and waiting, and
`workers`: by rank, slices pushed to it, seconds by which they came after the first worker's, and
seconds for which a round waits for it now.

The scheduler says nothing, nor does a process that no launcher listens to.
"""
from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, Optional

from .config import launcher_reports
from .launch_reports import report

# Seconds between two reports.
EVERY = 1.0


def report_status(look: Callable[[], Dict[str, Any]]) -> None:
    """Reports what `look` returns, once."""
    report(status={"at": round(time.monotonic(), 3), **look()})


def keep_reporting(
    look: Callable[[], Dict[str, Any]], over: threading.Event
) -> Optional[threading.Thread]:
    """Begins to report what `look` returns, from a thread of its own, until `over` is set.

    Parameters
    ----------
    look
        Called once a second from that thread: the figures of one report, but for `at`.
    over
        Ends the thread, within the time that one report takes.

    Returns
    -------
    threading.Thread or None
        The thread, to be waited for before Python is wound down; None where no launcher listens, so
        that nothing is reported.
    """
    if launcher_reports() is None:
        return None

    def go_on() -> None:
        while not over.wait(EVERY):
            report_status(look)

    thread = threading.Thread(target=go_on, daemon=True, name="status")
    thread.start()
    return thread
