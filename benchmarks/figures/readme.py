"""Throughput of p3, TernGrad and their peers at three bandwidths, for the first page."""
from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import wrap
from typing import Any, Dict, List

from benchmarks.figures import captions, style
from benchmarks.figures.extent import QUICK, SETTLED
from benchmarks.replay import measurement, summary
from benchmarks.replay.arms import ARMS
from benchmarks.replay.job import Settings
from benchmarks.replay.trace import load

NETWORK, HOSTS = "resnet50", 4
RATES = (1.0, 4.0, 10.0)
CODED = "terngrad"
NAMES = ("p3", CODED, "stock_p3", "dist_sync", "horovod")


def runs(quick: bool = False) -> List[measurement.Run]:
    """All that it takes."""
    extent = QUICK if quick else SETTLED
    base = Settings(NETWORK, HOSTS, 0, 1, extent.warm_up, extent.iterations)
    # Encoding needs a larger dilation than sending does, and that is not the same to all stores
    # that send floats: links which are slower by more have MXNet's own lose more.
    both = [[name for name in NAMES if ARMS[name].dense == dense] for dense in (True, False)]
    return measurement.interleaved(
        *(measurement.plan(base, extent.some(RATES), names, extent.repeats) for names in both)
    )


def draw(lines: List[Dict[str, Any]], directory: Path) -> None:
    """Writes readme.svg and readme.md."""
    found = summary.throughputs(lines)
    drawn, axes = style.figure(7.2, 3.4)
    width = 0.8 / len(NAMES)
    for place, name in enumerate(NAMES):
        groups = [group for group, rate in enumerate(RATES) if (name, rate) in found]
        values = [found[name, RATES[group]] for group in groups]
        axes.bar(
            [group + (place - (len(NAMES) - 1) / 2) * width for group in groups],
            [value.median for value in values],
            width,
            yerr=[[value.median - value.least for value in values],
                  [value.most - value.median for value in values]],
            label=ARMS[name].label,
            **style.bars(name),
        )
    places = [group for group, rate in enumerate(RATES) if (summary.BOUND, rate) in found]
    bounds = [found[summary.BOUND, RATES[group]].median for group in places]
    axes.hlines(bounds, [x - 0.45 for x in places], [x + 0.45 for x in places], colors="black",
                linestyles="dashed", linewidth=1, label="bound for float32")
    axes.set_xticks(range(len(RATES)), [f"{rate:g} Gbit/s" for rate in RATES])
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    axes.set_ylabel("images/s")
    axes.set_title(f"Training ResNet-50 on {HOSTS} hosts, by the links' bandwidth", loc="left")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    style.save(drawn, directory / "readme.svg")
    (directory / "readme.md").write_text("\n".join(_text(lines)) + "\n")


def _text(lines: List[Dict[str, Any]]) -> List[str]:
    trace = load(NETWORK)
    dilations = [line["dilation"] for line in lines]
    slower = f"{min(dilations):g} to {max(dilations):g}"
    repeats = min(Counter((line["arm"], line["gigabits"]) for line in lines).values())
    about = (
        f"Images a second of {HOSTS} hosts together, each with a worker and a server, that train "
        f"ResNet-50 with {trace.batch} images a worker: medians of {repeats} runs, and their "
        f"range. Without communication it would be {HOSTS * trace.batch / trace.compute:.0f}. The "
        "bound is the most for any scheme that sends every gradient as float32."
    )
    how = (
        "measures it again, as root. The hosts are network namespaces of one machine, with slower "
        "links: stores are real, gradients random, and "
        f"computing is a wait as long as on a {trace.device}. So that two processors carry it, "
        f"links and waits are {slower} times slower"
    )
    encoding = {line["dilation"] for line in lines if line["arm"] == CODED}
    with_ = f" (`{CODED}`: {max(encoding):g})" if encoding else ""
    plain = ", for which results allow; processors are not. Nothing is encrypted."
    command = ["```sh", "rm -f docs/figures/readme.jsonl; make figure-readme", "```"]
    how = f"{how}{with_}{plain} {captions.began(lines)}".rstrip()
    return [*summary.table(lines), "", *wrap(about, 100), "", *command, "", *wrap(how, 100)]
