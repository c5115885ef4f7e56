"""What every server has, in a process of its own or in the worker's."""
from __future__ import annotations

from .. import _core
from ..config import Options
from ..optimizer.native_updater import NativeUpdater
from ..optimizer.server_values import ROWS, takes_rows
from ..optimizer.slice_optimizer import OptimizerLoop
from ..optimizer.state_answers import answers_of
from ..protocol import digest_board, end_board
from ..protocol.handover import HANDOVER, Shelf
from ..protocol.question_desk import QuestionDesk, server_halves
from ..protocol.questions import TRACE
from .tracing import ServerTracing


class ServerParts:
    """A server of the lane, what updates its keys, and who answers questions.

    Threads run from the beginning; `core.end_waits`, then `join` end them.

    Parameters
    ----------
    transport
        The server's own.
    workers
        How many it serves.
    options
        The stores'.
    job, job_name
        The job's number, which workers' messages have to carry, and the name that a launcher has
        given it, if any.
    shared_memory
        Whether to take memory from workers of this host, in which payloads need no network.
    """

    def __init__(
        self,
        transport: _core.Transport,
        workers: int,
        options: Options,
        job: int = 0,
        job_name: str = "",
        shared_memory: bool = False,
    ) -> None:
        halves = [make_half(options) for make_half in server_halves]
        methods = {name: made for half in halves for name, made in half.methods.items()}
        self.core = _core.Server(
            transport,
            workers=workers,
            timeout=options.timeout,
            silence=options.silence,
            patience=options.longest_wait,
            job=job,
            job_name=job_name,
            shared_memory=shared_memory,
            methods=methods,
        )
        self.loop = OptimizerLoop(self.core)
        self.native = NativeUpdater(self.core.abort)
        self._desk = QuestionDesk(self.core)
        self._desk.register("slice state", answers_of(self.loop))
        self._desk.register("rows state", answers_of(self.native))
        self._desk.register(ROWS, takes_rows(self.native))
        self.end_board = end_board.EndBoard(workers)
        self._desk.register(end_board.QUESTION, self.end_board.answer)
        digests = digest_board.DigestBoard(workers, self.core.abort)
        self._desk.register(digest_board.QUESTION, digests.answer)
        self._desk.register(HANDOVER, Shelf().answer)
        self.tracing = ServerTracing(self.core, options)
        self._desk.register(TRACE, self.tracing.answer)
        for half in halves:
            half.answer_on(self.core, self._desk)
        self._desk.open()

    def join(self) -> None:
        """Returns when nothing is answered or updated any more, once waits have been ended."""
        self._desk.join()
        self.loop.join()
        self.tracing.end()
