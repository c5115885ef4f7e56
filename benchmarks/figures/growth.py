"""What hosts cost each process of a job, measured with 2 to 32 hosts and continued to 512.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, Iterator, List, Tuple

from benchmarks.figures import captions, style
from benchmarks.figures.captions import Lines
from benchmarks.figures.extent import FULL, QUICK
from benchmarks.growth.fits import Fit, line
from benchmarks.growth.run import GrowthRun
from benchmarks.growth.worker import ELEMENTS, KEYS
from benchmarks.replay.arms import ARMS

NAME = "growth"
NAMES = ("p3", "terngrad", "slim_dp", "dist_sync")
HOSTS = (2, 4, 8, 16, 32)
FAR = 512


@dataclass(frozen=True)
class Quantity:
    """Something that hosts may cost.

    Parameters
    ----------
    title : str
    unit : str
    look : callable
        Takes a line of results; returns it in the unit.
    digits : int
        Behind the point.
    goes_on : bool
        Whether it grows beyond what was measured, as it has.
    """

    title: str
    unit: str
    look: Callable[[Dict[str, Any]], float]
    digits: int = 0
    goes_on: bool = True


def _of(role: str, name: str, factor: float = 1.0) -> Callable[[Dict[str, Any]], float]:
    return lambda found: factor * float(found[role][name])


QUANTITIES = (
    Quantity("descriptors of a worker", "", _of("worker", "descriptors")),
    Quantity("descriptors of a server", "", _of("server", "descriptors")),
    Quantity("descriptors of the scheduler", "", _of("scheduler", "descriptors")),
    Quantity("TCP connections of a host", "", lambda found: found["connections"]),
    Quantity("memory of a worker", "MB", _of("worker", "private", 1e-6)),
    Quantity("memory of a server", "MB", _of("server", "private", 1e-6)),
    Quantity("memory of the scheduler", "MB", _of("scheduler", "private", 1e-6)),
    Quantity("processor time of a worker, a step", "ms", _of("worker", "a_step", 1e3), 1, False),
    Quantity("processor time of a server, a step", "ms", _of("server", "a_step", 1e3), 1, False),
    Quantity("packets of a host, a step", "", lambda found: found["packets"], 0, False),
    Quantity("packets of a host that idles, a second", "", lambda found: found["idle_packets"]),
    Quantity("processor time of a host that idles, a second", "ms",
             lambda found: 1e3 * (found["worker"]["idle"] + found["server"]["idle"]), 1),
    Quantity("threads of a worker and a server", "",
             lambda found: found["worker"]["threads"] + found["server"]["threads"]),
    Quantity("start of the job, here", "s", lambda found: found["startup"], 1),
    Quantity("first values, here", "s", lambda found: found["first"], 2),
    Quantity("a barrier, here", "ms", lambda found: 1e3 * found["barrier"], 1),
)
_PANELS = (
    ("processor time of a worker, a step", "ms"),
    ("descriptors of a server", ""),
    ("memory of a server", "MB"),
)

Found = Dict[Tuple[str, str], Tuple[List[int], List[float]]]


def runs(quick: bool = False) -> List[GrowthRun]:
    """All that it takes."""
    extent = QUICK if quick else FULL
    return [
        GrowthRun(arm, hosts, repeat)
        for repeat in range(extent.repeats) for hosts in extent.some(HOSTS) for arm in NAMES
    ]


def draw(lines: Lines, directory: Path) -> None:
    """Writes growth.svg and growth.md."""
    found = _medians(lines)
    drawn, axes = style.figure(7.2, 2.8, 1, len(_PANELS))
    for place, letter, (title, unit) in zip(axes, "abc", _PANELS):
        for arm in NAMES:
            if (arm, title) in found:
                hosts, values = found[arm, title]
                place.plot(hosts, values, label=ARMS[arm].label, **style.line(arm))
        place.set_title(f"({letter}) {title}".replace(" of a", "\nof a", 1), loc="left", fontsize=9)
        place.set_xlabel("hosts")
        place.set_ylabel(unit)
        place.set_ylim(bottom=0)
        place.grid()
    handles, labels = axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False,
                 fontsize="small")
    style.save(drawn, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(lines, found)) + "\n")


def _medians(lines: Lines) -> Found:
    """Hosts and medians of the runs, by arm and quantity."""
    found: Found = {}
    for arm in NAMES:
        own = [each for each in lines if each["arm"] == arm]
        hosts = sorted({each["hosts"] for each in own})
        for quantity in QUANTITIES if own else ():
            values = [
                median(quantity.look(each) for each in own if each["hosts"] == count)
                for count in hosts
            ]
            found[arm, quantity.title] = hosts, values
    return found


def _text(lines: Lines, found: Found) -> Iterator[str]:
    yield from captions.head(
        "What hosts cost", NAME,
        f"Jobs with a worker and a server on each host, and a model of {KEYS} keys of {ELEMENTS} "
        f"elements, so that what is left is what every further host costs.",
    )
    counts = sorted({each["hosts"] for each in lines})
    yield (f"{captions.repeats(lines, ['hosts']).partition(',')[0]}, with "
           f"{', '.join(map(str, counts))} hosts. The line through them is that of least squares "
           f"of relative errors, and \"off\" is how far the furthest of them is from it. \"With "
           f"{FAR}\" is where the line leads: nothing was measured there. What a step costs is not "
           f"continued: {KEYS} small keys lie on {KEYS} servers at most. Times \"here\" are those "
           f"of a machine whose two processors all hosts share, and grow with their sum. The start "
           f"is from the first worker's beginning, when servers and the scheduler have been "
           f"started, until the last worker's store is open. Memory is what a process has beside "
           f"what importing takes, which processes share here: they are forks of one that has "
           f"imported MXNet. {captions.began(lines)}".rstrip())
    for arm in NAMES:
        if (arm, QUANTITIES[0].title) not in found:
            continue
        yield from ["", f"## {ARMS[arm].label}", ""]
        yield f"| | {' | '.join(map(str, counts))} | a host more | off | with {FAR} |"
        yield "| --- |" + " ---: |" * (len(counts) + 3)
        for quantity in QUANTITIES:
            yield _row(quantity, counts, *found[arm, quantity.title])


def _row(quantity: Quantity, counts: List[int], hosts: List[int], values: List[float]) -> str:
    measured = dict(zip(hosts, values))
    digits = quantity.digits
    cells = [f"{measured[count]:.{digits}f}" if count in measured else "" for count in counts]
    fit: Fit = line(hosts, values)
    more = f"{fit.slope:.{digits + 2}f}"
    title = f"{quantity.title}, {quantity.unit}" if quantity.unit else quantity.title
    far = f"{fit.at(FAR):.{digits}f}" if quantity.goes_on else ""
    row = [title, *cells, more, f"{fit.off:.0%}", far]
    return f"| {' | '.join(row)} |"
