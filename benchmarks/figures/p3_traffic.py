"""What a host sends and receives every 10 ms, with the baseline and with P3: P3's figures 8 and 9.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, Callable, Dict, Iterator, List

from benchmarks.figures import captions, style
from benchmarks.figures.captions import Lines
from benchmarks.figures.extent import FULL, QUICK
from benchmarks.replay import measurement
from benchmarks.replay.arms import ARMS
from benchmarks.replay.job import Settings
from benchmarks.replay.summary import Spread

NAME = "p3-traffic"
HOSTS = 4
SAMPLE = 0.01  # seconds, the paper's
NAMES = ("dist_sync", "p3")
# Trace, title and Gbit/s of the paper's figures.
PANELS = (("resnet50", "ResNet-50", 4.0), ("vgg19", "VGG-19", 15.0), ("sockeye", "Sockeye", 4.0))
_BUSY = 0.05  # of the link's rate, in a sample
_SHOWN = 2.2  # iterations of the slower arm


def runs(quick: bool = False) -> List[measurement.Run]:
    """All that it takes."""
    extent = QUICK if quick else FULL
    plans = []
    for trace, _, gigabits in extent.some(PANELS):
        base = Settings(trace, HOSTS, 0, 1, extent.warm_up, extent.iterations, sample=SAMPLE)
        plans.append(measurement.plan(base, [gigabits], NAMES, extent.repeats))
    return measurement.interleaved(*plans)


@dataclass(frozen=True)
class Use:
    """How a run used its link.

    Parameters
    ----------
    sent, received : float
        Gbit/s on average.
    idle : float
        Share of the samples in which the host neither sends nor receives.
    both : float
        Of the other ones, the share of those in which it does both.
    """

    sent: float
    received: float
    idle: float
    both: float

    @classmethod
    def of(cls, line: Dict[str, Any]) -> Use:
        """Of a result line."""
        traffic, least = line["traffic"], _BUSY * line["gigabits"]
        sends = [rate > least for rate in traffic["sent"]]
        receives = [rate > least for rate in traffic["received"]]
        used = [any(ways) for ways in zip(sends, receives)]
        both = [all(ways) for ways in zip(sends, receives)]
        return cls(mean(traffic["sent"]), mean(traffic["received"]), 1 - mean(used),
                   sum(both) / max(1, sum(used)))


def draw(lines: Lines, directory: Path) -> None:
    """Writes p3-traffic.svg and p3-traffic.md."""
    panels = [(title, gigabits, [line for line in lines if line["trace"] == trace])
              for trace, title, gigabits in PANELS]
    panels = [panel for panel in panels if panel[2]]
    drawn, axes = style.figure(7.2, 2.2 * len(panels) + 0.4, len(panels), len(NAMES),
                               squeeze=False)
    for row, (title, gigabits, own) in zip(axes, panels):
        shown = _SHOWN * max(line["seconds"] for line in own)
        for place, name in zip(row, NAMES):
            one = [line for line in own if line["arm"] == name]
            if one:
                _plot(place, min(one, key=_from_median(one)), shown)
            place.set_title(f"{title}, {gigabits:g} Gbit/s: {ARMS[name].label}", loc="left",
                            fontsize="medium")
            place.set(xlim=(0, shown), ylim=(-1.2 * gigabits, 1.2 * gigabits))
            place.axhline(0, color="black", linewidth=0.6)
            place.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        row[0].set_ylabel("Gbit/s")
    for place in axes[-1]:
        place.set_xlabel("seconds")
    handles, labels = axes[0][0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False,
                 fontsize="small")
    style.save(drawn, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(lines, panels)) + "\n")


def _from_median(lines: Lines) -> Callable[[Dict[str, Any]], float]:
    """How far a run is from the one in the middle, which is shown."""
    middle = median(line["seconds"] for line in lines)
    return lambda line: abs(line["seconds"] - middle)


def _plot(place: Any, line: Dict[str, Any], shown: float) -> None:
    traffic = line["traffic"]
    count = int(shown / traffic["sample"]) + 1
    edges = [number * traffic["sample"] for number in range(count + 1)]
    sent, received = traffic["sent"][:count], traffic["received"][:count]
    place.stairs(sent, edges[: len(sent) + 1], fill=True, color="#0072b2", label="sent, upwards")
    place.stairs([-rate for rate in received], edges[: len(received) + 1], fill=True,
                 color="#e69f00", label="received, downwards")
    place.grid(axis="y")


def _text(lines: Lines, panels: List[Any]) -> Iterator[str]:
    yield from captions.head(
        "Use of a host's link", NAME,
        f"P3's figures 8 and 9: one of {HOSTS} hosts, sampled every {1000 * SAMPLE:g} ms.",
    )
    yield ("| network | at | store | sent, of the link | received | idle | both ways at a time | "
           "ms an iteration |")
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    for title, gigabits, own in panels:
        for name in NAMES:
            one = [line for line in own if line["arm"] == name]
            if not one:
                continue
            uses = [Use.of(line) for line in one]
            shares = [[use.sent / gigabits for use in uses],
                      [use.received / gigabits for use in uses],
                      [use.idle for use in uses], [use.both for use in uses]]
            cells = [f"{Spread.of(values).times(100).cell()} %" for values in shares]
            seconds = Spread.of([line["seconds"] for line in one]).times(1000).cell()
            yield (f"| {title} | {gigabits:g} Gbit/s | {ARMS[name].label} | {' | '.join(cells)} | "
                   f"{seconds} |")
    yield ""
    repeats = captions.repeats(lines, ["trace"])
    yield (f"{repeats}; the pictures have the run in the middle. Idle are "
           f"samples in which neither way carries {100 * _BUSY:g} % of what the link could; of the "
           "others, both ways carry it in the share of the next column. Gbit/s are those of the "
           f"stated link; {captions.slower(lines)}.")
