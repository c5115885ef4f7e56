"""How near p3 comes to the bound, with every network and 2 to 16 hosts, at 1 to 10 Gbit/s.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Dict, Iterator, List, Optional, Tuple

from benchmarks.figures import captions, curves, style
from benchmarks.figures.captions import Lines
from benchmarks.figures.extent import QUICK, SETTLED
from benchmarks.figures.wire_time import shows
from benchmarks.replay import measurement
from benchmarks.replay.bound import least_seconds
from benchmarks.replay.job import Settings
from benchmarks.replay.trace import load

NAME = "p3-bound"
OURS = "p3"
AIM = 0.97
HOSTS = (2, 4, 8, 16)
RATES = (1.0, 2.0, 4.0, 6.0, 10.0)
_MANY = 16


@dataclass(frozen=True)
class Network:
    """A network of the replay.

    Parameters
    ----------
    trace, title : str
    like : str
        The arm whose line it has.
    most_hosts : int
        More workers' parameters have no room in the 24 GiB of this machine.
    slower : float
        By how much more than others it is slowed down with 16 hosts: keys that are small cost
        processors, which shall be busy for 60 % of the time at most.
    """

    trace: str
    title: str
    like: str
    most_hosts: int = 16
    slower: float = 1.0


# The quickest first.
NETWORKS = (
    Network("googlenet", "GoogLeNet", "p3", slower=2.0),
    Network("inceptionv3", "InceptionV3", "slicing"),
    Network("resnet50", "ResNet-50", "qsgd"),
    Network("sockeye", "Sockeye", "stock_p3"),
    Network("alexnet", "AlexNet", "dgc"),
    Network("vgg16", "VGG-16", "onebit", most_hosts=8),
    Network("vgg19", "VGG-19", "slim_dp", most_hosts=8),
)

Point = Tuple[str, int, float]  # trace, hosts and Gbit/s


@dataclass(frozen=True)
class Found:
    """What was found at a point: medians of its runs."""

    share: float  # of the bound's throughput
    busy: Optional[float]  # of the processors' time

    def cell(self) -> str:
        """For a table."""
        busy = "" if self.busy is None else f" ({100 * self.busy:.0f} %)"
        return f"{self.share:.3f}{busy}"


def runs(quick: bool = False) -> List[measurement.Run]:
    """All that it takes: wherever communication shows."""
    extent = QUICK if quick else SETTLED
    plans = []
    for hosts in extent.some(HOSTS):
        for network in extent.some(NETWORKS):
            if hosts <= network.most_hosts:
                base = Settings(network.trace, hosts, 0, 1, extent.warm_up, extent.iterations)
                trace = load(network.trace)
                rates = [rate for rate in RATES if shows(trace, least_seconds(trace, hosts, rate))]
                planned = measurement.plan(base, extent.some(rates), [OURS], extent.repeats)
                slower = network.slower if hosts >= _MANY else 1.0
                plans.append([each.slowed(slower) for each in planned])
    return measurement.interleaved(*plans)


def draw(lines: Lines, directory: Path) -> None:
    """Writes p3-bound.svg and p3-bound.md."""
    found = _found(lines)
    drawn, axes = style.figure(7.2, 3.2, 1, len(HOSTS), sharey=True)
    for place, letter, hosts in zip(axes, "abcd", HOSTS):
        for network in NETWORKS:
            own = {rate: found[network.trace, hosts, rate].share
                   for rate in RATES if (network.trace, hosts, rate) in found}
            place.plot(list(own), list(own.values()), label=network.title,
                       **style.line(network.like))
        place.axhline(AIM, color="black", linestyle=(0, (4, 2)), linewidth=1,
                      label=f"aimed at: {AIM:g}")
        place.set_xscale("log")
        place.set_xticks(RATES, [f"{rate:g}" for rate in RATES], minor=False)
        place.minorticks_off()
        place.set_title(f"({letter}) {hosts} hosts", loc="left", fontsize="medium")
        place.set_xlabel("Gbit/s")
        place.grid()
    axes[0].set_ylabel("share of the bound")
    curves.legend(drawn, axes, columns=4)
    style.save(drawn, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(lines, found)) + "\n")


def _found(lines: Lines) -> Dict[Point, Found]:
    by_point: Dict[Point, Lines] = {}
    for line in lines:
        by_point.setdefault((line["trace"], line["hosts"], line["gigabits"]), []).append(line)
    found = {}
    for (trace, hosts, gigabits), own in by_point.items():
        seconds = median(line["seconds"] for line in own)
        busy = [line["busy"] for line in own if "busy" in line]
        share = least_seconds(load(trace), hosts, gigabits) / seconds
        found[trace, hosts, gigabits] = Found(share, median(busy) if busy else None)
    return found


def _text(lines: Lines, found: Dict[Point, Found]) -> Iterator[str]:
    yield from captions.head(
        "Shares of the bound", NAME,
        "`p3`'s throughput as a share of the bound's, wherever that is more than 1 % below "
        "computing alone, and in brackets how busy the machine's processors were.",
    )
    near = sum(each.share >= AIM for each in found.values())
    of_all = {(run.settings.trace, run.settings.hosts, run.settings.gigabits) for run in runs()}
    missing = len(of_all - found.keys())
    lack = f" Of all {len(of_all)} points {missing} have no run." if missing else ""
    yield f"At {near} of {len(found)} points it is {AIM:g} or more.{lack}"
    yield ""
    yield "| network | hosts | " + " | ".join(f"{rate:g} Gbit/s" for rate in RATES) + " |"
    yield f"| --- | ---: |{' ---: |' * len(RATES)}"
    for network in NETWORKS:
        for hosts in HOSTS:
            points = [(network.trace, hosts, rate) for rate in RATES]
            if any(point in found for point in points):
                cells = [found[point].cell() if point in found else "" for point in points]
                yield f"| {network.title} | {hosts} | {' | '.join(cells)} |"
    yield ""
    repeats = captions.repeats(lines, ["trace", "hosts", "gigabits"])
    yield f"{repeats.replace(', and their range', '')}; {captions.slower(lines)}."
