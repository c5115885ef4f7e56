"""Communication time of Plump-, Quant- and Slim-DP: Slim-DP's table 1.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Dict, Iterator, List, Tuple

from benchmarks.figures import captions, style
from benchmarks.figures.captions import Lines
from benchmarks.figures.extent import FULL, QUICK
from benchmarks.replay import measurement
from benchmarks.replay.arms import ARMS
from benchmarks.replay.job import Settings
from benchmarks.replay.summary import Spread
from benchmarks.replay.trace import load

NAME = "slim-communication"
GIGABITS = 10.0
PLUMP, QUANT = "p3", "qsgd"  # Quant's 8 bits and buckets of 512 are the store's defaults
ROWS = ("Plump-DP", "Quant-DP", "Slim-DP", "Slim-DP, indices travel")


@dataclass(frozen=True)
class Network:
    """One of the paper's.

    Parameters
    ----------
    trace, title : str
    slim : str
        The arm with the paper's alpha and beta; with `_keys` the explorer's indices travel.
    goal : float
        What is to be saved.
    paper, paper_compute : dict
        By workers, hours of communication for 10,000 mini-batches, Plump, Quant and Slim; and those
        of computing.
    """

    trace: str
    title: str
    slim: str
    goal: float
    paper: Dict[int, Tuple[float, float, float]]
    paper_compute: Dict[int, float]

    @property
    def arms(self) -> Tuple[str, ...]:
        """In the order of ROWS."""
        return (PLUMP, QUANT, self.slim, f"{self.slim}_keys")


NETWORKS = (
    Network("googlenet", "GoogLeNet", "slim_dp", 0.68,
            {4: (0.40, 0.20, 0.18), 8: (0.57, 0.29, 0.25)}, {4: 2.28, 8: 2.32}),
    Network("vgg16", "VGG-16", "slim_dp_20", 0.78,
            {4: (4.09, 1.47, 1.18), 8: (5.51, 1.93, 1.65)}, {4: 7.83, 8: 7.82}),
)
Times = Dict[str, Spread]  # seconds of communication an iteration, by arm


def runs(quick: bool = False) -> List[measurement.Run]:
    """All that it takes."""
    extent = QUICK if quick else FULL
    plans = []
    for network in NETWORKS[: 1 if quick else None]:
        for hosts in network.paper:
            base = Settings(network.trace, hosts, 0, 1, extent.warm_up, extent.iterations,
                            computes=False)
            plans.append(measurement.plan(base, [GIGABITS], network.arms, extent.repeats))
    return measurement.interleaved(*plans)


def draw(lines: Lines, directory: Path) -> None:
    """Writes slim-communication.svg and slim-communication.md."""
    groups = [(network, hosts, _times(lines, network.trace, hosts))
              for network in NETWORKS for hosts in network.paper]
    groups = [group for group in groups if PLUMP in group[2]]
    drawn, axes = style.figure(7.2, 3.4)
    width = 0.8 / len(ROWS)
    for row, label in enumerate(ROWS):
        places, shares = [], []
        for place, (network, _, times) in enumerate(groups):
            if network.arms[row] in times:
                places.append(place + (row - (len(ROWS) - 1) / 2) * width)
                shares.append(times[network.arms[row]].median / times[PLUMP].median)
        axes.bar(places, shares, width, label=label, **style.bars(NETWORKS[0].arms[row]))
    for place, (network, hosts, _) in enumerate(groups):
        paper = network.paper[hosts]
        axes.plot([place + (row - (len(ROWS) - 1) / 2) * width for row in range(len(paper))],
                  [hours / paper[0] for hours in paper], "D", color="white", markersize=5,
                  markeredgecolor="black", label="in the paper" if place == 0 else None)
    axes.set_xticks(range(len(groups)),
                    [f"{network.title}\n{hosts} workers" for network, hosts, _ in groups])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("communication time, Plump-DP's is 1")
    axes.grid(axis="y")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    style.save(drawn, directory / f"{NAME}.svg")
    (directory / f"{NAME}.md").write_text("\n".join(_text(lines, groups)) + "\n")


def _times(lines: Lines, trace: str, hosts: int) -> Times:
    """An iteration of communication alone."""
    own = [line for line in lines if (line["trace"], line["hosts"]) == (trace, hosts)]
    return {
        arm: Spread.of([line["seconds"] for line in own if line["arm"] == arm])
        for arm in {line["arm"] for line in own}
    }


def _text(
    lines: Lines, groups: List[Tuple[Network, int, Times]]
) -> Iterator[str]:
    yield from captions.head(
        "Communication time of Slim-DP", NAME,
        "Slim-DP's table 1: what an iteration takes beside computing, if nothing is computed while "
        f"gradients travel. Links of {GIGABITS:g} Gbit/s.",
    )
    yield ("| network | workers | method | store | MB sent | seconds | saved | in the paper | "
           "aimed at | speed of an iteration | in the paper | processors, s |")
    yield "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |"
    for network, hosts, times in groups:
        for row, arm in enumerate(network.arms):
            if arm in times:
                cells = [network.title, str(hosts), ROWS[row], ARMS[arm].label,
                         f"{_sent(lines, network, hosts, arm):.0f}",
                         times[arm].cell(3), *_saved(network, hosts, times, row),
                         f"{_of_processors(lines, network, hosts, arm):.2f}"]
                yield "| " + " | ".join(cells) + " |"
    yield ""
    repeats = captions.repeats(lines, ["trace", "hosts"])
    yield (f"{repeats}; {captions.slower(lines)}. Encoding and choosing "
           "what travels count as communication, as in the paper, and take as long as where hosts "
           f"share {captions.processors(lines)}. In the last column is what processors of a host "
           "did in an iteration, everything counted: hosts with few of them take longer than the "
           "network does. A new core, every 1000 rounds, was not chosen "
           "meanwhile. Updating weights, which is local training, does not count: here it does not "
           "take place. "
           "The paper's GoogLeNet has 13 million parameters, with the classifiers beside its "
           f"stem; this one has {load('googlenet').elements / 1e6:.1f} million without them. The "
           "paper's speeds of an iteration follow from the rounded hours of its table 1; by its "
           "table 2 GoogLeNet's with Slim-DP and 8 workers is 1.13.")


def _of_processors(lines: Lines, network: Network, hosts: int, arm: str) -> float:
    """Seconds of a host's processors in an iteration, of this machine's kind."""
    return median(line.get("busy", 0.0) * line.get("processors", 2) * line["dilation"] / hosts
                  * line["seconds"] for line in _runs_of(lines, network, hosts, arm))


def _sent(lines: Lines, network: Network, hosts: int, arm: str) -> float:
    """Megabytes of a host and iteration."""
    return median(line["sent"] for line in _runs_of(lines, network, hosts, arm)) / 1e6


def _runs_of(lines: Lines, network: Network, hosts: int, arm: str) -> Lines:
    wanted = (network.trace, hosts, arm)
    return [line for line in lines if (line["trace"], line["hosts"], line["arm"]) == wanted]


def _saved(network: Network, hosts: int, times: Times, row: int) -> Iterator[str]:
    """Of Plump's communication and of an iteration, each beside the paper's."""
    plump, own = times[PLUMP].median, times[network.arms[row]].median
    paper = network.paper[hosts]
    compute = load(network.trace).compute
    saved = 1 - own / plump
    is_plump, is_slim = row == 0, row >= ROWS.index("Slim-DP")
    yield "" if is_plump else f"{100 * saved:.1f} %"
    yield f"{100 * (1 - paper[row] / paper[0]):.0f} %" if 0 < row < len(paper) else ""
    reached = "yes" if saved >= network.goal else "no"
    yield f"{100 * network.goal:.0f} %: {reached}" if is_slim else ""
    yield "" if is_plump else f"{(compute + plump) / (compute + own):.2f}"
    paper_compute = network.paper_compute[hosts]
    yield (f"{(paper_compute + paper[0]) / (paper_compute + paper[row]):.2f}"
           if 0 < row < len(paper) else "")
