"""Starts one command for all processes, mpirun or srun, and waits for its tasks to report.

Neither forwards input to all tasks or tells their outputs apart, so each task connects to the
launcher by itself (see agent) and has two streams of its own from then on.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import time
from collections import defaultdict
from typing import Callable, Sequence

from . import network, proof
from .agent import TOKEN_NAME
from .direct import END_LIMIT, DirectStarter
from .far_ends import supervisor_command
from .hosts import Host, host_called
from .log import CLOSE_LIMIT
from .orders import Orders
from .output import Sink
from .processes import Process
from .protocol import Link
from .running import Running, StartError

_HELLO_LIMIT = 10.0
# Connections that have not said yet who they are, at once: strangers' leave descriptors for others,
# and the oldest makes room for a task.
_MOST_UNKNOWN = 500
# mpirun and srun end by themselves after their tasks. When they are ended before, they kill what
# is on their hosts, the supervisors too, which is one way for a process to stay.
_PATIENCE = 5.0
_LOOK = 1.0  # seconds after which it is looked whether a first task has come


class GatheringStarter:
    """Starts `name` once for all processes, for the launchers mpi and slurm.

    `command_for` makes its command from the addresses, "host:port", that the tasks may try.
    `hosts` are those of the hostfile.
    """

    def __init__(
        self,
        name: str,
        command_for: Callable[[list[str]], list[str]],
        interface: str | None,
        queue_timeout: float,
        sink: Sink,
        hosts: Sequence[Host],
    ) -> None:
        self._name = name
        self._command_for = command_for
        self._interface = interface
        self._queue_timeout = queue_timeout
        self._sink = sink
        self._hosts = hosts
        # mpirun or srun runs here, where --python need not be.
        self._direct = DirectStarter(lambda host: supervisor_command(sys.executable))
        # Only this job's tasks know it: from their environment, which ps does not show.
        self._token = secrets.token_hex(32)
        self._links: defaultdict[int, asyncio.Future[Link]] = defaultdict(
            lambda: asyncio.get_running_loop().create_future()
        )
        self._server: asyncio.AbstractServer | None = None
        self._spawner: Running | None = None
        self._unknown: list[asyncio.StreamWriter] = []

    async def open(self) -> Running:
        """Returns the running mpirun or srun; raises StartError."""
        addresses = network.outward_addresses()
        if self._interface:
            with contextlib.suppress(ValueError):  # it is the processes' hosts that must have it
                addresses = [network.address_of(self._interface)]
        listen_at = addresses[0] if len(addresses) == 1 else "0.0.0.0"
        try:
            self._server = await asyncio.start_server(self._welcome, listen_at, 0)
            assert self._server.sockets
            port = self._server.sockets[0].getsockname()[1]
            command = self._command_for([f"{address}:{port}" for address in addresses])
        except OSError as error:
            raise StartError(str(error), 1) from None
        process = Process(self._name, None, Host("localhost"), tuple(command), {})
        self._spawner = await self._direct.start(0, process, self._sink, limit=None)
        # The launcher's own address is not that of the hosts that mpirun or srun goes to.
        environment = {TOKEN_NAME: self._token, "DMLC_NODE_HOST": None}
        self._spawner.run(environment, _PATIENCE)
        return self._spawner

    async def start(self, number: int, process: Process, sink: Sink, limit: float) -> Running:
        """Returns the process once task `number` has reported; raises StartError, and
        asyncio.TimeoutError so many seconds after the first task has."""
        await self._await_first(number, process, sink)
        return await asyncio.wait_for(self._start(number, process, sink), limit)

    async def _await_first(self, number: int, process: Process, sink: Sink) -> None:
        """Returns once any task has reported; raises StartError where none does."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + self._queue_timeout
        while not any(link.done() for link in self._links.values()):
            left = latest - loop.time()
            if left <= 0:
                text = f"{process.name} did not start within {self._queue_timeout:g} s"
                raise StartError(text, 1, sink, final=False)
            links = {self._links[number], *self._links.values()}  # soon those of all tasks
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait(links, timeout=min(left, _LOOK), return_when=first)

    async def _start(self, number: int, process: Process, sink: Sink) -> Running:
        link = await self._links[number]
        hello = await link.greeting(sink.complain)
        if hello is None:
            text = f"{process.name} could not be started: its supervisor has gone"
            raise StartError(text, 1, sink, final=False)
        told = hello["host"]
        return Running(process, told, link, sink, place=host_called(told, self._hosts))

    async def close(self) -> None:
        if self._server:
            self._server.close()
        for arrived in self._links.values():
            if arrived.done() and not arrived.cancelled():
                arrived.result().close()
        if self._spawner:
            self._spawner.end()
            await asyncio.wait([self._spawner.gone], timeout=_PATIENCE + END_LIMIT)
        await self._direct.close()
        self._sink.close(time.monotonic() + CLOSE_LIMIT)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes in a task that knows the token; anybody else is turned away."""
        task = None
        if len(self._unknown) >= _MOST_UNKNOWN:
            self._unknown[0].transport.abort()  # as its own call of this hears
            del self._unknown[0]
        self._unknown.append(writer)
        with contextlib.suppress(asyncio.TimeoutError, OSError, ValueError):
            recognised = proof.recognise(reader, writer, self._token)
            task = await asyncio.wait_for(recognised, _HELLO_LIMIT)
        with contextlib.suppress(ValueError):
            self._unknown.remove(writer)
        if task is not None and not self._links[task.number].done():
            network.notice_silence(writer.get_extra_info("socket"))
            self._links[task.number].set_result(Link(reader, writer, Orders(task.key)))
        else:
            writer.close()
