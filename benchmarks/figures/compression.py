"""Throughput of every compression against bandwidth, and how much of slim_dp's time hides.
"""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Dict, Iterator, List, Tuple

from benchmarks.figures import captions, curves, style
from benchmarks.figures.captions import Lines
from benchmarks.figures.extent import FULL, QUICK
from benchmarks.figures.gains import behind, behind_table
from benchmarks.replay import measurement, summary
from benchmarks.replay.arms import ARMS
from benchmarks.replay.job import Settings
from benchmarks.replay.summary import Spread
from benchmarks.replay.trace import load

NAME = "compression"
NETWORK, TITLE, HOSTS = "resnet50", "ResNet-50", 4
RATES = (1.0, 4.0, 0.5, 2.0, 10.0)  # the first ones say most
DENSE = ("p3",)
CODED = ("fp16", "qsgd", "terngrad", "onebit", "signsgd", "dgc", "2bit", "slim_dp",
         "dist_sync_2bit")
HIDING = ("p3", "slim_dp")  # measured without computing too
_ENOUGH = 0.95  # of the throughput without communication


def runs(quick: bool = False) -> List[measurement.Run]:
    """All that it takes."""
    extent = QUICK if quick else FULL
    base = Settings(NETWORK, HOSTS, 0, 1, extent.warm_up, extent.iterations)
    rates = sorted(extent.some(RATES))
    # As on the first page: links that are slower by more have MXNet's own stores lose more.
    computing = [
        run for arms in (DENSE, CODED)
        for run in measurement.plan(base, rates, arms, extent.repeats)
    ]
    alone = [replace(run, settings=replace(run.settings, computes=False))
             for run in computing if run.arm in HIDING]
    return measurement.interleaved(computing, alone)


def draw(lines: Lines, directory: Path) -> None:
    """Writes compression.svg and compression.md."""
    trace = load(NETWORK)
    trained = [line for line in lines if line.get("computes", True)]
    found = summary.throughputs(trained)
    hidden = _hidden(lines)
    drawn, (left, right) = style.figure(7.2, 4.2, 1, 2, width_ratios=(2, 1))
    curves.draw(left, found, [*DENSE, *CODED], HOSTS * trace.batch / trace.compute)
    left.set_ylabel("images/s")
    left.set_title(f"{TITLE}, {HOSTS} hosts", loc="left")
    for name in HIDING:
        points = {rate: share for (arm, rate), (_, _, share) in hidden.items() if arm == name}
        right.plot(sorted(points), [points[rate] for rate in sorted(points)], **style.line(name))
    right.set_ylim(0, 1.05)
    right.set_title("communication hidden", loc="left")
    right.grid()
    rates = sorted({line["gigabits"] for line in lines})
    for place in (left, right):
        place.set_xscale("log")
        place.set_xticks(rates, [f"{rate:g}" for rate in rates])
        place.minorticks_off()
        place.set_xlabel("Gbit/s")
    curves.legend(drawn, [left], columns=4)
    style.save(drawn, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(lines, trained, hidden)) + "\n")


Hidden = Dict[Tuple[str, float], Tuple[float, float, float]]


def _hidden(lines: Lines) -> Hidden:
    """Seconds of communication alone and of an iteration, and the share of the former that hides.

    What an iteration takes beyond computing did not hide.
    """
    compute = load(NETWORK).compute
    found: Hidden = {}
    for arm in HIDING:
        for rate in sorted({line["gigabits"] for line in lines}):
            alone, whole = (
                [line["seconds"] for line in lines
                 if (line["arm"], line["gigabits"], line.get("computes", True))
                 == (arm, rate, computes)]
                for computes in (False, True)
            )
            if alone and whole:
                seconds, iteration = median(alone), median(whole)
                share = 1 - (iteration - compute) / seconds
                found[arm, rate] = seconds, iteration, max(0.0, min(1.0, share))
    return found


def _text(lines: Lines, trained: Lines, hidden: Hidden) -> Iterator[str]:
    trace = load(NETWORK)
    alone = HOSTS * trace.batch / trace.compute
    yield from captions.head(
        "Every compression against bandwidth", NAME,
        f"Images a second of {HOSTS} hosts together that train {TITLE}, each with a worker and a "
        "server.",
    )
    yield from summary.table(trained)
    yield ""
    repeats = captions.repeats(trained, ["gigabits"])
    yield (f"{repeats}. Without communication it would be {alone:.0f}; "
           f"{captions.slower(trained)}. So hosts that encode "
           f"share {captions.processors([line for line in trained if line['arm'] in CODED])}.")
    yield ""
    yield from _needs(trained, alone)
    yield ""
    yield from behind_table(
        list(behind(TITLE, trace, summary.throughputs(trained), "Gbit/s", HOSTS, "2bit",
                    ["dist_sync_2bit"])),
        "2bit")
    yield ""
    yield "## How much hides"
    yield ""
    yield "| store | at | communication alone | an iteration | hides | could hide at most |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for (arm, rate), (seconds, iteration, share) in hidden.items():
        most = min(1.0, trace.compute / seconds)
        yield (f"| {ARMS[arm].label} | {rate:g} Gbit/s | {seconds:.3f} s | {iteration:.3f} s | "
               f"{100 * share:.0f} % | {100 * most:.0f} % |")
    yield ""
    yield (f"Computing takes {trace.compute:.3f} s of an iteration. Communication alone is one in "
           "which layers take no time; what an iteration takes beyond computing did not hide.")


def _needs(lines: Lines, alone: float) -> Iterator[str]:
    """What each sends, and the least bandwidth at which that costs next to nothing."""
    found = summary.throughputs(lines)
    yield f"| store | MB that a host sends | of p3's | {100 * _ENOUGH:g} % of full speed from |"
    yield "| --- | ---: | ---: | ---: |"
    sent = {
        arm: Spread.of([line["sent"] / 1e6 for line in lines if line["arm"] == arm]).median
        for arm in (*DENSE, *CODED) if any(line["arm"] == arm for line in lines)
    }
    for arm, megabytes in sent.items():
        enough = [rate for (name, rate), value in found.items()
                  if name == arm and value.median >= _ENOUGH * alone]
        share = 100 * megabytes / sent["p3"] if "p3" in sent else None
        of_whole = "" if share is None else f"{share:.{0 if share >= 1 else 1}f} %"
        yield (f"| {ARMS[arm].label} | {megabytes:.1f} | {of_whole} | "
               f"{f'{min(enough):g} Gbit/s' if enough else '-'} |")
