"""Throughput of 2 to 16 hosts at 10 Gbit/s: P3's figure 10, with the peers.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

from benchmarks.figures import captions, curves, style, wire_time
from benchmarks.figures.captions import Lines
from benchmarks.figures.extent import FULL, QUICK
from benchmarks.figures.gains import behind, behind_table, gains, per_cent
from benchmarks.replay import measurement, summary
from benchmarks.replay.job import Settings
from benchmarks.replay.trace import load

NAME = "p3-hosts"
GIGABITS = 10.0
NAMES = ("p3", "stock_p3", "dist_sync", "horovod")


@dataclass(frozen=True)
class Panel:
    """A network of the paper's figure.

    Parameters
    ----------
    trace, title : str
    hosts : tuple of int
    paper : dict
        Gain over the baseline, by hosts.
    """

    trace: str
    title: str
    hosts: Tuple[int, ...]
    paper: Dict[int, float]


# VGG-19 with 16 hosts would need 30 GB here: weights, gradients and sums of 16 workers.
PANELS = (
    Panel("resnet50", "ResNet-50", (2, 4, 8, 16), {8: 0.0}),
    Panel("vgg19", "VGG-19", (2, 4, 8), {8: 0.61}),
    Panel("sockeye", "Sockeye", (2, 4, 8, 16), {8: 0.18}),
)


def runs(quick: bool = False) -> List[measurement.Run]:
    """All that it takes."""
    extent = QUICK if quick else FULL
    plans = []
    for panel in PANELS:
        for hosts in extent.some(panel.hosts):
            base = Settings(panel.trace, hosts, 0, 1, extent.warm_up, extent.iterations)
            plans.append(measurement.plan(base, [GIGABITS], NAMES, extent.repeats))
    return measurement.interleaved(*plans)


def draw(lines: Lines, directory: Path) -> None:
    """Writes p3-hosts.svg and p3-hosts.md."""
    drawn, axes = style.figure(7.2, 3.2, 1, len(PANELS))
    panels = [(panel, [line for line in lines if line["trace"] == panel.trace]) for panel in PANELS]
    for place, letter, (panel, own) in zip(axes, "abc", panels):
        found = summary.throughputs(own, "hosts")
        a_host = {point: spread.times(1 / point[1]) for point, spread in found.items()}
        trace = load(panel.trace)
        curves.draw(place, a_host, NAMES, trace.batch / trace.compute)
        place.set_xscale("log", base=2)
        place.set_xticks(panel.hosts, [str(hosts) for hosts in panel.hosts])
        place.set_title(f"({letter}) {panel.title}", loc="left")
        place.set_xlabel("hosts")
    axes[0].set_ylabel("samples/s a host")
    curves.legend(drawn, axes)
    style.save(drawn, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(panels)) + "\n")


def _text(panels: List[Tuple[Panel, Lines]]) -> Iterator[str]:
    yield from captions.head(
        "Throughput against hosts", NAME,
        f"P3's figure 10. Samples a second of all hosts together, each with a worker and a server, "
        f"on links of {GIGABITS:g} Gbit/s.",
    )
    yield ("| gain over `dist_sync` | at | in the paper | here | allowed by the bound | "
           "the paper's is reached | times as fast as 2 hosts |")
    yield "| --- | ---: | ---: | ---: | ---: | --- | ---: |"
    for panel, own in panels:
        yield from _gains(panel, summary.throughputs(own, "hosts"))
    yield ""
    behinds = [row for panel, own in panels
               for row in behind(panel.title, load(panel.trace),
                                 summary.throughputs(own, "hosts"), "hosts")]
    yield from behind_table(behinds)
    yield ""
    yield from wire_time.table(panels)
    for panel, own in panels:
        if own:
            repeats = captions.repeats(own, ["hosts"])
            alone = load(panel.trace).batch / load(panel.trace).compute
            yield from ["", f"## {panel.title}", "", *summary.table(own, "hosts", "hosts"), "",
                        f"{repeats}. Without communication a host would reach "
                        f"{alone:.0f}; {captions.slower(own)}."]


def _gains(panel: Panel, found: summary.Found) -> Iterator[str]:
    for each in gains(found, "p3"):
        paper = panel.paper.get(int(each.value))
        scaled = ""
        if ("p3", 2) in found:
            scaled = f"{found['p3', each.value].median / found['p3', 2].median:.2f}"
        cells = [f"| {panel.title}", f"{each.value:g} hosts",
                 "" if paper is None else per_cent(paper), per_cent(each.gain),
                 per_cent(each.allowed), "" if paper is None else each.reaches(paper), scaled]
        yield " | ".join(cells) + " |"
