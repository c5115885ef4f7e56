"""A server's part in a trace: it records itself as rank 0 asks (lane/tracer.py)."""
from __future__ import annotations

import secrets
from typing import Any, Dict, Optional

from .. import _core
from ..config import Options
from ..launch_reports import report
from ..protocol.question_desk import Answer
from ..trace.recording import Recording
from ..trace.steps import Steps


class ServerTracing:
    """Begins and ends a server's recording. `rank` is set before anybody asks."""

    rank = 0

    def __init__(self, server: _core.Server, options: Options) -> None:
        self._server = server
        self._options = options
        self._recording: Optional[Recording] = None
        # Server 0's is the job's. It is none that messages carry: others may read the files.
        self._job = secrets.token_hex(4)

    def answer(self, asked: Dict[str, Any], _data: bytes) -> Answer:
        """Raises OSError where a file cannot be written, which the worker is told."""
        if "job" in asked:
            return {"job": self._job}, b""
        self.end()
        if "begin" in asked:
            begin = asked["begin"]
            self._recording = Recording(
                self._server.recorder(),
                begin["job"],
                "server",
                self.rank,
                begin["directory"],
                # A step more at each end: here a round begins before its first gradient is looked
                # at, and has ended once all workers have pushed the one after the next.
                Steps(max(0, begin["first"] - 1), begin["last"] + 1),
                self._options.trace_events,
                {},
            )
            report(traced=self._recording.path)
        return {}, b""

    def end(self) -> None:
        """Ends the recording, if there is one."""
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.end()
