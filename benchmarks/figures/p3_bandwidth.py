"""Throughput against bandwidth: P3's figure 7, with slicing alone and the peers.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from benchmarks.figures import captions, curves, style, wire_time
from benchmarks.figures.captions import Lines
from benchmarks.figures.extent import FULL, QUICK
from benchmarks.figures.gains import behind, behind_table, gains, per_cent
from benchmarks.replay import measurement, summary
from benchmarks.replay.job import Settings
from benchmarks.replay.trace import load

NAME = "p3-bandwidth"
HOSTS = 4
ARMS = ("p3", "slicing", "stock_p3", "dist_sync", "horovod")


@dataclass(frozen=True)
class Panel:
    """A network of the paper's figure.

    Parameters
    ----------
    trace, title : str
    rates : tuple of float
        Gbit/s.
    paper : dict
        By arm, the gain over the baseline that the paper names, and at how many Gbit/s; None where
        it says that it is its largest one, and not where.
    """

    trace: str
    title: str
    rates: Tuple[float, ...]
    paper: Dict[str, Tuple[float, Optional[float]]]


# Rates in an order in which the first ones say most.
PANELS = (
    Panel("resnet50", "ResNet-50", (4.0, 1.0, 2.0, 6.0, 10.0), {"p3": (0.26, 4)}),
    Panel("inceptionv3", "InceptionV3", (2.0, 1.0, 4.0, 6.0, 10.0), {"p3": (0.18, None)}),
    Panel("vgg19", "VGG-19", (15.0, 30.0, 5.0, 10.0),
          {"p3": (0.66, 15), "slicing": (0.49, 30)}),
    Panel("sockeye", "Sockeye", (4.0, 1.0, 2.0, 8.0), {"p3": (0.38, None)}),
)


def runs(quick: bool = False) -> List[measurement.Run]:
    """All that it takes."""
    extent = QUICK if quick else FULL
    plans = []
    for panel in PANELS:
        base = Settings(panel.trace, HOSTS, 0, 1, extent.warm_up, extent.iterations)
        rates = extent.some(panel.rates)
        plans.append(measurement.plan(base, sorted(rates), ARMS, extent.repeats))
    return measurement.interleaved(*plans)


def draw(lines: Lines, directory: Path) -> None:
    """Writes p3-bandwidth.svg and p3-bandwidth.md."""
    drawn, axes = style.figure(7.2, 6.2, 2, 2)
    panels = [(panel, [line for line in lines if line["trace"] == panel.trace]) for panel in PANELS]
    for place, letter, (panel, own) in zip(axes.flat, "abcd", panels):
        trace = load(panel.trace)
        alone = HOSTS * trace.batch / trace.compute
        found = summary.throughputs(own)
        # Lines of what communicates for ever are far below it.
        curves.draw(place, found, ARMS, alone if _is_near(found, alone) else None)
        place.set_title(f"({letter}) {panel.title}", loc="left")
        place.set_xlabel("Gbit/s")
        place.set_ylabel("samples/s")
    curves.legend(drawn, axes.flat)
    style.save(drawn, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(panels)) + "\n")


def _is_near(found: summary.Found, alone: float) -> bool:
    return any(point.median > 0.4 * alone for point in found.values())


def _text(panels: List[Tuple[Panel, Lines]]) -> Iterator[str]:
    yield from captions.head(
        "Throughput against bandwidth", NAME,
        f"P3's figure 7. Samples a second of {HOSTS} hosts together, each with a worker and a "
        "server.",
    )
    yield from _gains(panels)
    yield ""
    behinds = [row for panel, own in panels
               for row in behind(panel.title, load(panel.trace), summary.throughputs(own), "Gbit/s",
                                 HOSTS)]
    yield from behind_table(behinds)
    yield ""
    yield from wire_time.table(panels)
    for panel, own in panels:
        if own:
            yield from ["", f"## {panel.title}", "", *summary.table(own), "", *_how(panel, own)]


def _gains(panels: List[Tuple[Panel, Lines]]) -> Iterator[str]:
    """What the paper says of the gains over the baseline, and what was found."""
    yield ("| gain over `dist_sync` | at | in the paper | here | allowed by the bound | "
           "the paper's is reached | largest here |")
    yield "| --- | ---: | ---: | ---: | ---: | --- | ---: |"
    for panel, own in panels:
        found = summary.throughputs(own)
        for arm, (paper, rate) in panel.paper.items():
            here = gains(found, arm)
            at = [each for each in here if rate in (None, each.value)]
            if not at:
                continue
            largest, there = (max(some, key=lambda each: each.gain) for some in (here, at))
            yield " | ".join([
                f"| {panel.title}{', slicing alone' if arm == 'slicing' else ''}",
                f"{there.value:g} Gbit/s" if rate else f"its best, {there.value:g} Gbit/s",
                per_cent(paper), per_cent(there.gain), per_cent(there.allowed),
                there.reaches(paper),
                f"{per_cent(largest.gain)} at {largest.value:g} Gbit/s |",
            ])


def _how(panel: Panel, own: Lines) -> Iterator[str]:
    trace = load(panel.trace)
    repeats = captions.repeats(own, ["gigabits"])
    yield (f"{repeats}. Without communication it would be "
           f"{HOSTS * trace.batch / trace.compute:.0f}, with {trace.batch} samples a worker; "
           f"{captions.slower(own)}.")
