"""Checks all hosts of a job and the links between them."""
from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import sys
import time
from typing import Any, Awaitable, Callable

from ..launcher.direct import END_LIMIT
from ..launcher.hosts import Host as Place
from ..launcher.job import Starter
from ..launcher.options import Options
from .agreement import compare_addresses, compare_clocks, compare_versions
from .finding import Finding
from .host import Host
from .probes import Probe, ProbeError
from .remedies import remedy_for_pair
from .report import Link, Report
from .starting import Reached, start_probes

_CHECK_LIMIT = 300.0  # seconds; two imports, each of which has its own limit
_ANSWER_LIMIT = 20.0
# What pair.py allows for one link: a connection, pings and transfers.
_PAIR_LIMIT = 60.0
_PAIR_USUAL = 1.5
_LOOKS = 5  # at a clock; the one with the shortest round trip counts


async def check_hosts(options: Options, starter: Starter, places: list[Place]) -> Report:
    """Checks `places`; whatever has been started there is gone when this returns."""
    _say(f"starting a probe on each of {len(places)} hosts by {options.launcher}")
    reached = Reached()
    try:
        await start_probes(reached, options, starter, places)
        return await Checking(reached).check()
    finally:
        await _end(reached.started, starter)


class Checking:
    """One check of the hosts that were reached. A probe that is lost is named, and left out."""

    def __init__(self, reached: Reached) -> None:
        self._reached = reached

    async def check(self) -> Report:
        hosts = await self._check_each()
        together: list[Finding] = []
        links: list[Link] = []
        if len(self._reached.started) + len(self._reached.failures) > 1:
            together = await self._compare(hosts)
            links = await self._measure_all()
        for name, finding in self._reached.failures.items():
            hosts.setdefault(name, Host(name, [], {})).findings.append(finding)
        return Report(list(hosts.values()), together, links)

    async def _check_each(self) -> dict[str, Host]:
        """All hosts at the same time."""

        async def check(probe: Probe) -> Host:
            answer = await probe.ask("check", _CHECK_LIMIT)
            findings = [Finding(**finding) for finding in answer["findings"]]
            return Host(probe.name, findings, answer["traits"])

        return await self._of_each(check)

    async def _compare(self, hosts: dict[str, Host]) -> list[Finding]:
        offsets = await self._of_each(_clock_offset)
        # A host that is no Linux has no traits.
        compared = [
            probe
            for probe in self._reached.probes
            if probe.name in offsets and hosts[probe.name].traits
        ]
        if len(compared) < 2:
            return []
        known = [hosts[probe.name] for probe in compared]
        addresses = [probe.endpoint.address for probe in compared if probe.endpoint]
        return [
            *compare_versions(known),
            *compare_addresses(known, addresses),
            compare_clocks(known, [offsets[probe.name] for probe in compared]),
        ]

    async def _measure_all(self) -> list[Link]:
        """One link after another, so that no two share what they are measured on."""
        token = secrets.token_hex(32)

        async def listen(probe: Probe) -> str:
            answer = await probe.ask("listen", _ANSWER_LIMIT, **_at(probe), token=token)
            return str(answer.get("error", ""))

        listening = await self._of_each(listen)
        pairs = list(itertools.permutations(self._reached.probes, 2))
        if pairs:
            _say(
                f"measuring {len(pairs)} links, one after another: about "
                f"{len(pairs) * _PAIR_USUAL:.0f} s"
            )
        links = []
        for origin, target in pairs:
            names = (origin.name, target.name)
            error = listening.get(target.name, "")
            lost = [name for name in names if name in self._reached.failures]
            if lost:
                remedy = f"see what is said of {lost[0]}"
                links.append(Link(*names, error=f"the probe on {lost[0]} is lost", remedy=remedy))
            elif error:
                links.append(Link(*names, error=error, remedy=remedy_for_pair("listen", *names)))
            else:
                links.append(await self._measure(origin, target, token))
        return links

    async def _measure(self, origin: Probe, target: Probe, token: str) -> Link:
        names = (origin.name, target.name)
        try:
            answer = await origin.ask("measure", _PAIR_LIMIT, **_at(target), token=token)
        except ProbeError as error:
            self._reached.lose(origin.name, error)
            return Link(*names, error=str(error), remedy=f"see what is said of {origin.name}")
        if "error" in answer:
            remedy = remedy_for_pair(answer["kind"], *names)
            return Link(*names, error=answer["error"], remedy=remedy)
        return Link(*names, **answer)

    async def _of_each(self, ask: Callable[[Probe], Awaitable[Any]]) -> dict[str, Any]:
        """What `ask` returns for each probe, by name, in their order; the lost are left out."""
        probes = list(self._reached.probes)
        results = await asyncio.gather(*map(ask, probes), return_exceptions=True)
        answers = {}
        for probe, result in zip(probes, results):
            if isinstance(result, ProbeError):
                self._reached.lose(probe.name, result)
            elif isinstance(result, BaseException):
                raise result
            else:
                answers[probe.name] = result
        return answers


async def _clock_offset(probe: Probe) -> tuple[float, float]:
    """How far the host's clock is ahead of this one, in seconds, and the error of that."""
    looks = []
    for _ in range(_LOOKS):
        begun = time.time()
        answer = await probe.ask("time", _ANSWER_LIMIT)
        ended = time.time()
        looks.append(((ended - begun) / 2, answer["time"] - (begun + ended) / 2))
    error, offset = min(looks)
    return offset, error


def _at(probe: Probe) -> dict[str, Any]:
    assert probe.endpoint is not None
    return {"address": probe.endpoint.address, "port": probe.endpoint.port}


async def _end(started: list[Probe], starter: Starter) -> None:
    for probe in started:
        probe.running.end()
    if started:
        await asyncio.wait([probe.running.gone for probe in started], timeout=END_LIMIT)
    await starter.close()


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"check: {text}", file=sys.stderr, flush=True)
