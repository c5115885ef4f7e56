"""A worker's part in a trace: it records itself, and rank 0 has the servers record themselves."""
from __future__ import annotations

import contextlib
from dataclasses import asdict
from typing import Any, Dict, Optional

from .. import _core
from ..config import Options
from ..errors import KVStoreError
from ..launch_reports import report
from ..protocol.questions import TRACE, answer_to, answers_to, ask
from ..trace.networks import networks
from ..trace.recording import Recording
from ..trace.steps import Steps


class Tracer:
    """One trace, from `begin` to `end`.

    Parameters
    ----------
    worker, rank
        Whose it is.
    servers
        How many the job has.
    options
        The store's.
    """

    def __init__(self, worker: _core.Worker, rank: int, servers: int, options: Options) -> None:
        self._worker = worker
        self._rank = rank
        self._servers = servers
        self._options = options
        self._recording: Optional[Recording] = None

    def begin(self, directory: str, steps: Steps) -> None:
        """Raises KVStoreError where files cannot be written, here or at a server."""
        options = self._options
        answer, _ = answer_to(self._worker, ask(self._worker, 0, TRACE, {"job": True}))
        job = str(answer["job"])
        try:
            self._recording = Recording(
                self._worker.recorder(),
                job,
                "worker",
                self._rank,
                directory,
                steps,
                options.trace_events,
                asdict(options),
            )
        except OSError as error:
            raise KVStoreError(f"worker {self._rank} cannot be traced: {error}") from None
        report(traced=self._recording.path)
        if self._rank == 0:
            begin = {
                "job": job,
                "directory": directory,
                "first": steps.first,
                "last": steps.last,
            }
            self._ask({"begin": begin})
        networks.watch(self._worker)

    def end(self, servers_too: bool) -> None:
        """Ends the recording, and, if this is rank 0, the servers'; else they end with the job."""
        networks.end(self._worker)
        if self._recording is None:
            return
        self._recording.end(self._worker.declared(), self._worker.recorder().layers())
        if self._rank == 0 and servers_too:
            with contextlib.suppress(KVStoreError):
                self._ask({"end": True})

    def _ask(self, what: Dict[str, Any]) -> None:
        servers = range(self._servers)
        questions = [ask(self._worker, server, TRACE, what) for server in servers]
        answers_to(self._worker, questions)
