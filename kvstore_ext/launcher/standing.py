"""What is said of a job that goes well: that it stands, or whom it waits for; what it has done.

A job stands when all workers say that they have joined, for which each of them waits for all
processes. Programs that report nothing, MXNet's own servers for one, are not waited for here, and
are not named as missing; nor is one whose reports do not arrive, once another says that it has
joined.
"""

from __future__ import annotations

import asyncio
import time
from typing import Callable, Sequence

from .account import size
from .processes import Process
from .running import Running, all_have_joined, stands


class Standing:
    """Follows a job; both lists are its own, and `running` grows while it starts.

    `say` takes each line, `every` is the time in seconds between two about who is missing.
    `own_servers`: servers and scheduler are those of kvstore_ext, which report.
    """

    def __init__(
        self,
        processes: Sequence[Process],
        running: Sequence[Running],
        say: Callable[[str], None],
        every: float,
        own_servers: bool,
    ) -> None:
        self._processes = processes
        self._running = running
        self._say = say
        self._every = every
        self._own_servers = own_servers
        self._begun = time.monotonic()

    async def remind(self) -> None:
        """Says now and then whom the job waits for, until it stands."""
        while True:
            await asyncio.sleep(self._every)
            if self._has_started() and all_have_joined(self._running):
                return
            missing = self._missing()
            if missing:
                self._say(f"after {self._seconds()} s {missing}")

    async def announce(self) -> None:
        """Says that the job stands as soon as it does; call it when all processes are started."""
        await asyncio.wait([each.account.joined for each in self._workers()])
        hosts = len({each.host for each in self._running})
        servers = sum(each.process.role == "server" for each in self._running)
        counts = f"{_count(len(self._workers()), 'worker')} and {_count(servers, 'server')}"
        self._say(f"{counts} on {_count(hosts, 'host')} after {self._seconds()} s")

    def conclude(self) -> None:
        """Says what the job has done."""
        sent = sum(each.account.sent for each in self._workers())
        received = sum(each.account.received for each in self._workers())
        traffic = ""
        if sent or received:
            traffic = f"; workers sent {size(sent)} and received {size(received)}"
        self._say(f"the job is done after {self._seconds()} s{traffic}")

    def _missing(self) -> str:
        """Returns whom the job waits for, in words; empty where nobody reports anything."""
        if not self._has_started():
            started = [(each.process.role, each.process.rank) for each in self._running]
            names = [
                f"{each.name} on {each.where}"
                for each in self._processes
                if (each.role, each.rank) not in started
            ]
            return f"these have not started: {', '.join(names)}"
        if not any(each.account.joining for each in self._running):
            return ""
        missing = [each for each in self._reporting() if not each.account.joining]
        if missing and not stands(self._running):
            return f"the job waits for {', '.join(map(_absence, missing))}"
        coming = [each for each in self._workers() if each.account.joining]
        late = [each.title for each in coming if not each.account.joined.done()]
        return (
            f"all processes have come, but {', '.join(late)} cannot join yet: is there a firewall "
            "between hosts, or another network to choose with --interface?"
        )

    def _has_started(self) -> bool:
        return len(self._running) == len(self._processes)

    def _reporting(self) -> list[Running]:
        """Returns those that say when they join: others' servers only once one of them has."""
        servers = [each for each in self._running if each.process.role != "worker"]
        if self._own_servers or any(each.account.joining for each in servers):
            return list(self._running)
        return self._workers()

    def _workers(self) -> list[Running]:
        return [each for each in self._running if each.process.role == "worker"]

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._begun:.1f}"


def _absence(running: Running) -> str:
    if running.ended.done():
        return f"{running.title} (has ended without having joined)"
    if running.process.role == "worker":
        return f"{running.title} (has not opened a store yet)"
    return running.title


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
