"""Where what made-up processes have recorded stands in the file for viewers."""
from __future__ import annotations

from kvstore_ext.trace.clocks import bring_together
from kvstore_ext.trace.events import Kind
from kvstore_ext.trace.merging import merged
from kvstore_ext.trace.reading import JobTrace

from tests.trace.made_up import process

DAY = 86_400 * 10**9


def test_a_process_whose_clock_is_not_known_begins_at_its_own_first_event() -> None:
    """And moves no other: its host's clock counts from days before, or after."""
    begins = 3 * DAY
    step = {"kind": Kind.STEP, "round": 1}
    summed = {"kind": Kind.SUMMED}
    together = bring_together([
        process("worker", 0, {**step, "begin": begins, "end": begins + 9000}, clock="this"),
        process("worker", 1, {**step, "begin": begins + 5000, "end": begins + 9000}, clock="this"),
        process("server", 0, {**summed, "begin": 7000, "end": 9000}, clock="earlier"),
        process("server", 1, {**summed, "begin": 9 * DAY, "end": 9 * DAY + 1000}, clock="later"),
        process("server", 2, clock="of nothing"),
    ])
    spans = [event for event in merged(JobTrace(tuple(together), {})) if event["ph"] == "X"]
    found = {event["pid"]: (event["ts"], event["dur"]) for event in spans}
    assert found == {1: (0, 9), 2: (5, 4), 10_000: (0, 2), 10_001: (0, 1)}
