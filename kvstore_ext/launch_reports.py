"""What this process tells the launcher that started it: nothing, where none listens.

A report is one datagram to a Unix socket, whose path kvstore-launch puts into KVSTORE_EXT_REPORTS:
a JSON object with one of these. The process's supervisor passes it on (launcher/protocol.py).

    {"joining": true}     it joins the cluster: a store is being opened, or a server has started
    {"joined": true}      the cluster stands: all have come
    {"traffic": {"sent": 1000, "received": 900}}    bytes of a store's lane, which has closed
    {"failed": "worker 1: its script failed: ..."}  why it is about to end, in a failure's own words

No connection is kept, so reports survive forks, shells in between, and whoever closes descriptors.
"""
from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

from .config import launcher_reports

# Seconds. Whoever does not take a report in that time will miss it: training goes on.
_LIMIT = 0.2
_LONGEST = 4000  # characters of a text: a report has to fit into one line of the launcher's


def report(**fact: Any) -> None:
    """Tells the launcher one fact, such as joined=True. Never raises, and waits for 0.2 s at most.

    Parameters
    ----------
    fact
        Its name and what JSON can say of it. A text of more than 4000 characters loses its middle.
    """
    path = launcher_reports()
    if path is None:
        return
    fact = {name: _shortened(value) for name, value in fact.items()}
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(_LIMIT)
        sender.sendto(json.dumps(fact).encode(), path)


def _shortened(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= _LONGEST:
        return value
    return f"{value[:_LONGEST // 2]} ... {value[-_LONGEST // 2:]}"
