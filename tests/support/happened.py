"""What a store's worker has done with its keys, from traces of it."""
from __future__ import annotations

import tempfile
from typing import Any, NamedTuple

from kvstore_ext.trace.events import Kind, Message
from kvstore_ext.trace.reading import read

_SENT = (Message.INIT, Message.PUSH, Message.PULL)


class Happened(NamedTuple):
    """`what` is "ready", the gradient; "queued", "send" or "result", a slice; or "done", the key's
    operation.
    """

    time: int  # nanoseconds
    what: str
    key: str  # as the store names it to people
    slice: int
    round: int
    priority: int


class Happenings:
    """Traces a store from its making on, until it is closed or `take` was called for the last time.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self._begin()

    def _begin(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self._store.start_trace(self._directory.name)

    def take(self) -> list[Happened]:
        """What has happened since the last time, in order."""
        self._store.stop_trace()
        rank = self._store.rank
        job = read(self._directory.name)
        worker = next(process for process in job.workers if process.rank == rank)
        found, sent = [], set()
        for event in worker.events:
            kind = Kind(event["kind"])
            what, time = {
                Kind.READY: ("ready", event["end"]),
                Kind.QUEUED: ("queued", event["begin"]),
                Kind.SENT: ("send", event["begin"]),
                Kind.WRITTEN: ("result", event["begin"]),
                Kind.DONE: ("done", event["end"]),
            }.get(kind, ("", 0))
            part = (event["key"], event["slice"], event["round"])
            if not what or (kind == Kind.SENT and (event["message"] not in _SENT or part in sent)):
                continue
            if kind == Kind.SENT:
                sent.add(part)
            found.append(
                Happened(
                    int(time),
                    what,
                    job.name_of(int(event["key"])),
                    int(event["slice"]),
                    int(event["round"]),
                    int(event["priority"]),
                )
            )
        self._directory.cleanup()
        self._begin()
        return sorted(found, key=lambda each: each.time)
