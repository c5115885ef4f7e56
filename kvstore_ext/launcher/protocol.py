"""What the launcher and a supervisor say to each other, over one stream in each direction.

The supervisor begins with GREETING, because a login shell may have written something before it.
Then each side sends messages: a line with a JSON object, followed, where the object has a
"size", by that many raw bytes.

Launcher to supervisor:
    {"reserve": {"address": ..., "interface": ..., "towards": ..., "port": ..., "share": ...,
     "shares": ...}}                       find an address and a port for the process
    {"run": {"command": [...], "environment": {...}, "directory": ..., "patience": ...,
     "takes_input": ..., "silence": ...,   the process's input is what follows, raw; otherwise
     "trace": ..., "notice": ...}}         SIGN now and then, or TELL: to end
    end of the stream: end the process

The first two have a "proof" beside that where the stream is a connection of the task's (orders.py).

Supervisor to launcher:
    {"host": ...}                          it is there
    {"reserved": {"address": ..., "port": ...}}
    {"output": true, "size": ...}          what the process wrote, both streams in one
    {"report": {...}}                      what it told of itself (kvstore_ext/launch_reports.py)
    {"ended": {"status": ...}} or {"ended": {"signal": ...}}, after all that came before
    {"traced": ..., "size": ...}           a piece of a file of a trace (trace_files.py), at the end
    {"left": [...]}                        processes that SIGKILL has not ended yet, at the end
    {"error": ..., "status": ...}          it could not be done, in plain words
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict

from .orders import Orders

if TYPE_CHECKING:  # a supervisor, of which there is one for each process, needs none of it
    import asyncio

GREETING = b"kvstore_ext supervisor 1\n"
SIGN, TELL = b"\n", b"T"
# Seconds that a process has which was told to end, unless it is said otherwise: as batch systems
# and Kubernetes have it.
DEFAULT_NOTICE = 30.0

# Bytes that may follow a message: no supervisor sends more at a time.
_MOST_PAYLOAD = 1 << 24

Message = Dict[str, Any]


def encode(message: Message, payload: bytes = b"") -> bytes:
    """Returns the bytes of one message."""
    if payload:
        message = {**message, "size": len(payload)}
    return json.dumps(message).encode() + b"\n" + payload


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of `data` to a blocking descriptor; raises OSError when nobody reads it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class Link:
    """The launcher's end of the two streams to one supervisor; `orders` proves what is sent."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        orders: Orders | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._orders = orders
        self._hung_up = False

    async def greeting(self, stray: Callable[[bytes], None]) -> Message | None:
        """Waits for the supervisor and returns its first message, None when it never came.

        Whatever else arrives before goes to `stray`. Its last line may have no end, as of a login
        shell that has run `echo -n`.
        """
        while True:
            line = await self._line()
            if line.endswith(GREETING):
                before = line[: -len(GREETING)]
                if before:
                    stray(before + b"\n")
                break
            stray(line)
            if not line.endswith(b"\n"):
                return None
        received = await self.receive()
        return received[0] if received else None

    async def receive(self) -> tuple[Message, bytes] | None:
        """Returns the next message and its payload.

        None at the end of the stream, and for what is no message.
        """
        line = await self._line()
        if not line.endswith(b"\n"):
            return None
        try:
            message = json.loads(line.decode())
            size = message.get("size", 0) if isinstance(message, dict) else None
            if type(size) is not int or not 0 <= size <= _MOST_PAYLOAD:
                return None
            return message, await self._reader.readexactly(size)
        except (EOFError, OSError, ValueError, RecursionError):
            return None

    def send(self, order: Message) -> None:
        if self._orders:
            order = self._orders.prove(order)
        self._writer.write(encode(order))

    def send_raw(self, data: bytes) -> None:
        self._writer.write(data)

    def give(self, sign: bytes) -> None:
        """Gives SIGN, that the launcher is there, or TELL, once the process runs."""
        if not self._hung_up and not self._writer.transport.is_closing():
            self._writer.write(sign)

    def hang_up(self) -> None:
        """Asks the supervisor to end its process. What it still says can be received."""
        self._hung_up = True
        if not self._writer.transport.is_closing():
            with contextlib.suppress(OSError):  # the connection has ended at the other side
                self._writer.write_eof()

    def close(self) -> None:
        self._writer.close()

    async def _line(self) -> bytes:
        try:
            return await self._reader.readline()
        except ValueError:
            # Longer than the reader's limit, so neither a greeting nor a message.
            return b""
        except OSError:
            return b""
