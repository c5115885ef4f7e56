"""What a check has found, as text or as JSON."""
from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Callable, Sequence

from .finding import WRONG, Finding
from .host import Host

_DIRECTION = " (rows from, columns to)"


@dataclass(frozen=True)
class Link:
    """The way from one host to another: seconds of a round trip, bytes a second, or the error."""

    origin: str
    target: str
    round_trip: float | None = None
    bandwidth: float | None = None
    error: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Report:
    """What was found on each host, of them together, and of each link."""

    hosts: list[Host]
    together: list[Finding]
    links: list[Link]

    def is_fit(self) -> bool:
        findings = [*self.together, *(each for host in self.hosts for each in host.findings)]
        return not any(each.state == WRONG for each in findings) and not any(
            link.error for link in self.links
        )


def as_json(report: Report) -> str:
    """One object with "fit", "hosts", "together" and "links"; times in seconds, bytes a second."""
    return json.dumps({"fit": report.is_fit(), **asdict(report)}, indent=2)


def as_text(report: Report) -> str:
    """A line a check, then tables of links; hosts that found the same share a line."""
    several = len(report.hosts) > 1
    lines = [line for group in _groups(report.hosts) for line in _lines(*group, several)]
    lines += [line for each in report.together for line in _lines(each, [], False)]
    if report.links:
        lines += ["", *_tables(report), *_broken(report.links)]
    return "\n".join([*lines, "", _conclusion(report)])


def _groups(hosts: Sequence[Host]) -> list[tuple[Finding, list[str]]]:
    """Each finding with the hosts it is of, in the order of the checks."""
    owners: dict[Finding, list[str]] = {}
    for host in hosts:
        for finding in host.findings:
            owners.setdefault(finding, []).append(host.name)
    names = list(dict.fromkeys(finding.name for finding in owners))
    ordered = sorted(owners.items(), key=lambda item: names.index(item[0].name))
    # Of a host that was not reached there is nothing but that.
    reached = [host.name for host in hosts if len(host.findings) > 1]
    everybody = "all" if len(reached) == len(hosts) else "all others"
    return [(each, [everybody] if who == reached else who) for each, who in ordered]


def _lines(finding: Finding, owners: list[str], several: bool) -> list[str]:
    label = f"{', '.join(owners)}: " if several else ""
    lines = [f"{finding.state:<6} {finding.name:<12} {label}{finding.found}"]
    if finding.remedy:
        lines.append(f"{'':<19} remedy: {finding.remedy}")
    return lines


def _tables(report: Report) -> list[str]:
    return [
        *_table(f"Round trip, ms{_DIRECTION}", report, lambda link: link.round_trip, 1e3),
        "",
        *_table(f"Bandwidth, Mbit/s{_DIRECTION}", report, lambda link: link.bandwidth, 8e-6),
    ]


def _table(
    title: str, report: Report, value: Callable[[Link], float | None], unit: float
) -> list[str]:
    names = list(dict.fromkeys(link.origin for link in report.links))
    cells = {(link.origin, link.target): value(link) for link in report.links}
    width = max(len(name) for name in names) + 4
    lines = [title, " " * width + "".join(f"{number:>9}" for number in range(len(names)))]
    for number, origin in enumerate(names):
        row = [_cell(cells.get((origin, target)), unit, origin == target) for target in names]
        line = f"{number:>2}  {origin:<{width - 4}}" + "".join(f"{cell:>9}" for cell in row)
        lines.append(line.rstrip())
    return lines


def _cell(value: float | None, unit: float, same: bool) -> str:
    if value is None:
        return "" if same else "none"
    scaled = value * unit
    return f"{scaled:.0f}" if scaled >= 100 else f"{scaled:.3g}"


def _broken(links: Sequence[Link]) -> list[str]:
    lines = []
    for link in links:
        if link.error:
            lines += ["", f"{WRONG:<6} {'link':<12} {link.origin} to {link.target}: {link.error}"]
            lines.append(f"{'':<19} remedy: {link.remedy}")
    return lines


def _conclusion(report: Report) -> str:
    several = len(report.hosts) > 1
    if report.is_fit():
        return "These hosts are fit." if several else "This host is fit."
    findings = [*report.together, *(finding for finding, _ in _groups(report.hosts))]
    count = sum(each.state == WRONG for each in findings)
    count += sum(bool(link.error) for link in report.links)
    return f"Found wrong: {count}, each with its remedy above."
