"""Traces of processes that never were, for what looks at traces."""
from __future__ import annotations

from typing import Any

import numpy as np
from kvstore_ext.trace.clocks import Clock
from kvstore_ext.trace.events import EVENT, Kind
from kvstore_ext.trace.reading import ProcessTrace


def events(*rows: dict[str, Any]) -> np.ndarray:
    """Events with these fields, in the order of their beginnings."""
    made = np.zeros(len(rows), EVENT)
    made["peer"] = made["slice"] = -1
    for event, row in zip(made, rows):
        for name, value in row.items():
            event[name] = value
    return made[np.argsort(made["begin"], kind="stable")]


def process(role: str, rank: int, *rows: dict[str, Any], clock: str = "") -> ProcessTrace:
    """A process that has recorded these events, on a clock of this name."""
    return ProcessTrace(role, rank, "host", 1, events(*rows), clock=Clock(name=clock))


def ping(begin: int, end: int, server: int, time: int) -> dict[str, Any]:
    """A worker's ping, and the time of the server that has answered it."""
    return {"kind": Kind.CLOCK, "begin": begin, "end": end, "peer": server, "key": time}
