"""The coordinator's end of the conversation with a probe."""
from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from ..launcher.output import Sink
from ..launcher.ranks import Endpoint
from ..launcher.running import Running
from ..launcher.terminal import Terminal
from .probe import MARK, Answer


class ProbeError(Exception):
    """A probe has ended, or does not answer; the text says of what."""


class Conversation(Sink):
    """Takes what a probe writes: its answers, and whatever else comes out of its process."""

    def __init__(self, name: str, log_dir: str, terminal: Terminal) -> None:
        super().__init__(name, log_dir, terminal)
        self._answers: asyncio.Queue[Answer] = asyncio.Queue()
        self._begun = b""

    def write(self, data: bytes) -> None:
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            if line.startswith(MARK.encode()):
                self._answers.put_nowait(json.loads(line[len(MARK) :].decode()))
            else:
                super().write(line + b"\n")

    async def answer(self) -> Answer:
        """The next answer, once there is one."""
        return await self._answers.get()


class Probe:
    """One probe, whose process runs under a supervisor. `endpoint` is where it is to listen."""

    def __init__(self, number: int, name: str, running: Running, talk: Conversation) -> None:
        self.number = number
        self.name = name
        self.running = running
        self.endpoint: Endpoint | None = None
        self._talk = talk

    async def begin(self, environment: dict[str, str], limit: float) -> None:
        """Starts it; raises ProbeError where it does not say that it is there."""
        self.running.run({**environment}, takes_input=True)
        await self._answer(limit)

    async def ask(self, what: str, limit: float, **about: Any) -> Answer:
        """The answer to one request, see probe.py; raises ProbeError after `limit` seconds."""
        if self.running.ended.done():
            raise self._lost()
        self.running.link.send_raw(json.dumps({"do": what, **about}).encode() + b"\n")
        return await self._answer(limit)

    async def _answer(self, limit: float) -> Answer:
        answer = asyncio.ensure_future(self._talk.answer())
        either: list[asyncio.Future[Any]] = [answer, self.running.ended]
        await asyncio.wait(either, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        answer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await answer
        if self.running.ended.done():
            raise self._lost()
        raise ProbeError(f"has not answered within {limit:g} s")

    def _lost(self) -> ProbeError:
        last = self._talk.last_lines()[-1:]
        return ProbeError(": ".join([self.running.ended.result().text, *last]))
