"""What a process records of each slice while a job is traced, and how that lies in a file.

An event is one record of `EVENT`, 48 bytes, as csrc/trace/recorder.h has it. `begin` and `end` are
nanoseconds; what happens at once has both alike. Rounds of a key are counted from 1; round 0 gives
it its first value.
"""
from __future__ import annotations

from enum import IntEnum

import numpy as np


class Kind(IntEnum):
    """What happened. On a worker a gradient's slice takes the first ten in turn; `peer` is then a
    server's rank, on a server a worker's."""

    NOTHING = 0  # a place in the buffer that was taken, but not filled before the process ended
    # Of a key: `slice` is WHOLE_KEY.
    READY = 1  # worker: from the script's call to the engine's start of it: there is a gradient
    PREPARED = 2  # worker: the whole gradient was looked at, and its scaler agreed on
    # Of a slice.
    ENCODED = 3  # worker: made to travel; server: the answer made of its sum, without an optimizer
    QUEUED = 4  # worker: handed to the link to its server; `bytes` as it travels
    SENT = 5  # either: a part left for ZeroMQ, for `peer`; `bytes` of the part
    RECEIVED = 6  # either: a part came from `peer`
    SUMMED = 7  # server: the slice of worker `peer` was added up
    UPDATED = 8  # server: from the optimizer's taking the sum until the value was computed
    ANSWERED = 9  # server: the result handed to the link to worker `peer`
    WRITTEN = 10  # worker: the result was decoded and written into the output
    # Of a key.
    DONE = 11  # worker: the whole operation, from its start in the engine to its end
    # Of a link; `key` and `round` say nothing.
    ACKNOWLEDGED = 12  # either: `peer` has told that it has received `bytes` more
    CLOCK = 13  # worker: a ping from `begin` to `end`; `key` is the time of server `peer` between
    # Of a worker's computation: `key` is a number in `ProcessTrace.layers`. An event lasts from the
    # end of the layer before it, whichever pass that was of, so what it waited for is in it.
    FORWARD = 14
    BACKWARD = 15
    # Of a process: from the first gradient of step `round` to that of the next.
    STEP = 16


class Message(IntEnum):
    """What SENT and RECEIVED carry, and of which operation READY and DONE are: `message`, as
    csrc/transport/message.h numbers them. Of broadcasts READY and DONE have INIT, in any round."""

    INIT = 3
    PUSH = 4
    PULL = 5
    RESULT = 6
    ASK = 11
    ANSWER = 12
    METHOD = 14


WHOLE_KEY = -1  # in `slice`
NO_PEER = -1  # in `peer`
LEAST_WEIGHT = 48  # bytes that a message counts at the least, among those in flight on a link

EVENT = np.dtype(
    [
        ("key", "<u8"),
        ("begin", "<i8"),
        ("end", "<i8"),
        ("round", "<u4"),
        ("slice", "<i4"),
        ("bytes", "<u4"),
        ("priority", "<i4"),
        ("peer", "<i2"),
        ("kind", "u1"),
        ("message", "u1"),
        ("thread", "<u4"),  # as Linux numbers them
    ]
)
assert EVENT.itemsize == 48
