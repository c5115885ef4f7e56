"""Starts a supervisor on every host that can be reached, by the launcher's own starters."""
from __future__ import annotations

import asyncio
import os
from typing import Any

from ..launcher.environment import forwarded
from ..launcher.hosts import Host as Place
from ..launcher.job import Starter
from ..launcher.options import Options
from ..launcher.processes import Process
from ..launcher.running import Running, StartError
from ..launcher.terminal import Terminal
from .finding import Finding, wrong
from .probes import Conversation, Probe, ProbeError
from .remedies import remedy_for_start

_ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
_BEGIN_LIMIT = 60.0  # seconds until the interpreter has started, from a slow disk too


class Reached:
    """The hosts on which a probe runs, and why there is none on the others, by name.

    `started` are all whose processes have to be ended.
    """

    def __init__(self) -> None:
        self.probes: list[Probe] = []
        self.started: list[Probe] = []
        self.failures: dict[str, Finding] = {}

    def lose(self, name: str, error: Exception, status: int = 0) -> None:
        """Takes a host among the failures."""
        remedy = remedy_for_start(name, str(error), status)
        self.failures[name] = wrong("probe", str(error), remedy)
        self.probes = [probe for probe in self.probes if probe.name != name]


async def start_probes(
    reached: Reached, options: Options, starter: Starter, places: list[Place]
) -> None:
    """Starts a probe at each of the places at the same time."""
    try:
        spawner = await starter.open()
    except StartError as error:
        for number, place in enumerate(places):
            reached.lose(_name(options, number, place), error, error.status)
        return

    async def start(number: int, place: Place) -> None:
        try:
            probe = await _start(options, starter, spawner, number, place)
            reached.started.append(probe)
        except StartError as error:
            name = _name(options, number, place)
            reached.lose(name, _with_last_line(error), error.status)

    await asyncio.gather(*(start(number, place) for number, place in enumerate(places)))
    reached.probes = sorted(reached.started, key=lambda probe: probe.number)
    await _begin_all(options, reached)


async def _start(
    options: Options, starter: Starter, spawner: Running | None, number: int, place: Place
) -> Probe:
    """The supervisor for one probe; raises StartError."""
    process = Process("probe", number, place, (options.python, _ENTRY, "--probe"), {})
    talk = Conversation(process.name, options.log_dir, Terminal(options.only_rank))
    limit = options.start_timeout
    start = asyncio.ensure_future(starter.start(number, process, talk, limit))
    either: list[asyncio.Future[Any]] = [start, *([spawner.ended] if spawner else [])]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if spawner and not start.done():
        start.cancel()
        await asyncio.gather(start, return_exceptions=True)
        raise StartError(f"{spawner.title} {spawner.ended.result().text}", 1, spawner.sink)
    try:
        running = start.result()
    except asyncio.TimeoutError:
        raise StartError(f"its supervisor did not start within {limit:g} s", 1, talk) from None
    by_ssh = options.launcher == "ssh"
    name = place.name if by_ssh else f"{running.host} ({number})"
    return Probe(number, name, running, talk)


def _name(options: Options, number: int, place: Place) -> str:
    """What there is to call a place where no probe has come to say on which host it is.

    mpirun and srun choose who goes where, srun in an order of its own.
    """
    return place.name if options.launcher == "ssh" else f"host {number}"


async def _begin_all(options: Options, reached: Reached) -> None:
    """Gives every probe the address and port that the launcher would, and starts it."""
    towards = None
    for number, probe in enumerate(list(reached.probes)):
        try:
            probe.endpoint = await probe.running.reserve(
                options.start_timeout,
                number,
                len(reached.probes),
                interface=options.interface,
                towards=towards,
            )
            towards = towards or probe.endpoint.address
        except StartError as error:
            reached.lose(probe.name, error)
    environment = {**(forwarded(os.environ)), "PYTHONUNBUFFERED": "1"}
    if options.interface is not None:
        environment["DMLC_INTERFACE"] = options.interface

    async def begin(probe: Probe) -> None:
        assert probe.endpoint is not None
        own = {**environment, "DMLC_NODE_HOST": probe.endpoint.address}
        try:
            await probe.begin(own, _BEGIN_LIMIT)
        except ProbeError as error:
            reached.lose(probe.name, error)

    await asyncio.gather(*(begin(probe) for probe in list(reached.probes)))


def _with_last_line(error: StartError) -> Exception:
    """The error with what ssh, mpirun or the interpreter said last."""
    last = error.sink.last_lines()[-1:] if error.sink else []
    return Exception(": ".join([str(error).rpartition(" could not be started: ")[2], *last]))
