"""Throughput against bandwidth of p3, TernGrad and their peers: the first page's table and picture.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

from benchmarks.figures import style
from benchmarks.replay import measurement, summary
from benchmarks.replay.arms import ARMS
from benchmarks.replay.job import Settings
from benchmarks.replay.trace import load

NETWORK, HOSTS = "resnet50", 4
RATES = (1.0, 4.0, 10.0)
NAMES = ("p3", "terngrad", "stock_p3", "dist_sync", "horovod")
REPEATS, WARM_UP, ITERATIONS = 3, 2, 3


def runs() -> List[measurement.Run]:
    """All that it takes."""
    base = Settings(NETWORK, HOSTS, 0, 1, WARM_UP, ITERATIONS)
    return measurement.plan(base, RATES, NAMES, REPEATS)


def draw(lines: List[Dict[str, Any]], directory: Path) -> None:
    """Writes readme.svg and readme.md."""
    found = summary.throughputs(lines)
    drawn, axes = style.figure(6.4, 3.6)
    for name in (*NAMES, summary.BOUND):
        rates = [rate for rate in RATES if (name, rate) in found]
        values = [found[name, rate] for rate in rates]
        if not values:
            continue
        middles = [value.median for value in values]
        spread = [[value.median - value.least for value in values],
                  [value.most - value.median for value in values]]
        label = ARMS[name].label if name in ARMS else "bound for float32 gradients"
        axes.errorbar(rates, middles, yerr=spread, label=label, **style.line(name))
    axes.set_xscale("log")
    axes.set_xticks(RATES, [f"{rate:g}" for rate in RATES])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("Gbit/s of each host's link")
    axes.set_ylabel("images/s of the cluster")
    axes.set_title(f"ResNet-50 on {HOSTS} hosts", loc="left")
    axes.legend(frameon=False, loc="lower right")
    style.save(drawn, directory / "readme.svg")
    (directory / "readme.md").write_text("\n".join(_text(lines)) + "\n")


def _text(lines: List[Dict[str, Any]]) -> List[str]:
    trace = load(NETWORK)
    dilations = sorted({line["dilation"] for line in lines})
    return [
        *summary.table(lines),
        "",
        f"Images a second of {HOSTS} hosts together, each with a worker and a server, that train",
        f"ResNet-50 with {trace.batch} images a worker; medians of {REPEATS} runs, their range in",
        f"brackets. Without communication it were {HOSTS * trace.batch / trace.compute:.0f}.",
        "The bound is the most that any scheme reaches that sends every gradient as float32.",
        "",
        f"Made by `make figure-readme`, which replays the network ({trace.device}) over links of",
        "network namespaces; computing is a wait, gradients and stores are real. Everything is",
        f"slowed down {dilations[0]:g} to {dilations[-1]:g} times, so that two processors carry it.",
    ]
