"""What this process tells the launcher that started it: nothing, where none listens.

A report is one datagram to a Unix socket, whose path kvstore-launch puts into KVSTORE_EXT_REPORTS:
one of these JSON objects. The process's supervisor passes it on (launcher/protocol.py).

    {"joining": true}     it joins the cluster: a store is being opened, or a server has started
    {"joined": true, "rank": 0}    the cluster stands: all have come; its rank there
    {"traffic": {"sent": 1000, "received": 900}}    bytes of a store's lane, which has closed
    {"failed": "worker 1: its script failed: ..."}  why it is about to end, in a failure's own words
    {"step": 40}          how many steps its store has behind it, of a script that fails
    {"status": {...}}     what it is doing, once a second: see status_reports.py
    {"traced": "/data/traces/worker-0"}    it writes a trace into the files of this name
    {"told": true}        it was told to end, by SIGTERM
    {"snapshot": "after step 40, with a snapshot in /data/snapshots"}    how the job ends then

No connection is kept, so reports survive forks, shells in between, and whoever closes descriptors.
"""
from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import Any

from .config import launcher_reports

# Seconds. Whoever does not take a report in that time will miss it: training goes on.
_LIMIT = 0.2
# Characters of a reason, which JSON may make 12 bytes each; report_socket.py takes 32 KiB in all.
_LONGEST_REASON = 2000


def launcher_listens() -> bool:
    """Whether there is a launcher that takes reports. One that ends this process does not, nor can
    one be seen from a container that does not share its directory for temporary files."""
    path = launcher_reports()
    return path is not None and os.path.exists(path)


def report(**fact: Any) -> None:
    """Tells the launcher one fact, such as joined=True. Never raises, and waits for 0.2 s at most.

    Parameters
    ----------
    fact
        Its name and what JSON can say of it. Of a reason (`failed`), the first 2000 characters
        count.
    """
    path = launcher_reports()
    if path is None:
        return
    if "failed" in fact:
        fact["failed"] = fact["failed"][:_LONGEST_REASON]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(_LIMIT)
        sender.sendto(json.dumps(fact).encode(), path)
