"""Throughput against the size of a slice: P3's figure 12.
"""
from __future__ import annotations

from pathlib import Path
from typing import Dict, Iterator, List, Tuple

from benchmarks.figures import captions, curves, style
from benchmarks.figures.captions import Lines
from benchmarks.figures.extent import FULL, QUICK
from benchmarks.replay import measurement, summary
from benchmarks.replay.job import Settings

NAME = "p3-slices"
HOSTS = 4
OURS = "p3"
# Trace, title and Gbit/s, as in the paper's figures 8 and 9: figure 12 does not say.
PANELS = (("resnet50", "ResNet-50", 4.0), ("vgg19", "VGG-19", 15.0), ("sockeye", "Sockeye", 4.0))
DEFAULT = 50_000  # float32, the store's; the paper's best
# In an order in which the first ones say most.
SLICES = (DEFAULT, 1_000, 1_000_000, 5_000, 20_000, 100_000)
_NEAR = 0.05  # of the best


def runs(quick: bool = False) -> List[measurement.Run]:
    """All that it takes."""
    extent = QUICK if quick else FULL
    plans = []
    for trace, _, gigabits in PANELS:
        for slice_elements in sorted(extent.some(SLICES)):
            base = Settings(trace, HOSTS, 0, 1, extent.warm_up, extent.iterations,
                            slice_elements=slice_elements)
            plans.append(measurement.plan(base, [gigabits], [OURS], extent.repeats))
    return measurement.interleaved(*plans)


def draw(lines: Lines, directory: Path) -> None:
    """Writes p3-slices.svg and p3-slices.md."""
    drawn, axes = style.figure(7.2, 3.0, 1, len(PANELS))
    panels = [(title, gigabits, [line for line in lines if line["trace"] == trace])
              for trace, title, gigabits in PANELS]
    for place, letter, (title, gigabits, own) in zip(axes, "abc", panels):
        curves.draw(place, summary.throughputs(own, "slice_elements"), [OURS])
        place.axvline(DEFAULT, color="black", linewidth=0.6)
        place.set_xscale("log")
        place.set_title(f"({letter}) {title}, {gigabits:g} Gbit/s", loc="left", fontsize="medium")
        place.set_xlabel("elements of a slice")
    axes[0].set_ylabel("samples/s")
    curves.legend(drawn, axes)
    style.save(drawn, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(lines, panels)) + "\n")


def _text(lines: Lines, panels: List[Tuple[str, float, Lines]]) -> Iterator[str]:
    yield from captions.head(
        "Throughput against the size of a slice", NAME,
        f"P3's figure 12. Samples a second of {HOSTS} hosts together with `p3`, the most elements "
        "(float32) of a slice in the columns.",
    )
    sizes = sorted({line["slice_elements"] for line in lines})
    yield "| network | at | " + " | ".join(f"{size:,}" for size in sizes) + " | bound |"
    yield "| --- | ---: |" + " ---: |" * (len(sizes) + 1)
    for title, gigabits, own in panels:
        found = summary.throughputs(own, "slice_elements")
        if found:
            cells = [found[OURS, size].cell() if (OURS, size) in found else "-" for size in sizes]
            bound = next(iter(_of(found, summary.BOUND).values()))
            yield f"| {title} | {gigabits:g} Gbit/s | {' | '.join(cells)} | {bound:.0f} |"
    yield ""
    yield f"| network | best size | its throughput over {DEFAULT:,}'s | within {100 * _NEAR:g} % |"
    yield "| --- | ---: | ---: | --- |"
    for title, _, own in panels:
        yield from _best(title, _of(summary.throughputs(own, "slice_elements"), OURS))
    yield ""
    repeats = captions.repeats(lines, ["trace", "slice_elements"])
    yield (f"{repeats}; {captions.slower(lines)}. The paper's best size is "
           f"{DEFAULT:,}, and so is the store's default. Handling messages takes as "
           f"long as where hosts share {captions.processors(lines)}: with more of them small "
           "slices would cost less.")


def _of(found: summary.Found, name: str) -> Dict[float, float]:
    return {size: value.median for (arm, size), value in found.items() if arm == name}


def _best(title: str, found: Dict[float, float]) -> Iterator[str]:
    if DEFAULT in found:
        best = max(found, key=lambda size: found[size])
        more = found[best] / found[DEFAULT] - 1
        near = "yes" if more <= _NEAR else "no"
        yield f"| {title} | {best:,} | {100 * more:+.1f} % | {near} |"
